//! Convolution as a matrix product: the patches of a picture laid out as rows (`im2col`), and back.

/// A square window that slides over pictures of one shape, one pixel at a time and never over the edge.
///
/// Pictures are height × width × channels, the channels of a pixel side by side. A patch is what the window
/// shows at one place, in the same order, so a row of it is a run of `side · channels` neighbours in memory.
/// The patches of a picture times a matrix (patch length × outputs) is the picture's convolution: at place
/// (y, x), Σ over (i, j, c) of picture[y+i, x+j, c] · weight[(i, j, c), output].
#[derive(Clone, Copy, Debug)]
pub struct Window {
    picture: [usize; 3],
    side: usize,
}

impl Window {
    /// A window of `side` × `side` pixels over pictures of shape `picture`; none if it does not fit.
    pub fn new(picture: [usize; 3], side: usize) -> Option<Self> {
        let [height, width, channels] = picture;
        (side > 0 && channels > 0 && side <= height && side <= width).then_some(Self { picture, side })
    }

    /// In how many places the window fits: rows and columns.
    pub fn places(self) -> [usize; 2] {
        let [height, width, _] = self.picture;
        [height - self.side + 1, width - self.side + 1]
    }

    /// Pixels in the window.
    pub fn area(self) -> usize {
        self.side * self.side
    }

    /// Numbers in a picture.
    pub fn picture_len(self) -> usize {
        self.picture.iter().product()
    }

    /// Numbers in a patch.
    pub fn patch_len(self) -> usize {
        self.area() * self.picture[2]
    }

    /// Numbers in all patches of a picture.
    pub fn patches_len(self) -> usize {
        self.places().iter().product::<usize>() * self.patch_len()
    }

    /// Writes the patches of `picture`, place after place, row by row.
    pub fn gather(self, picture: &[f32], patches: &mut [f32]) {
        self.check(picture, patches);
        for (place, patch) in patches.chunks_exact_mut(self.patch_len()).enumerate() {
            for (start, row) in self.rows(place).zip(patch.chunks_exact_mut(self.run())) {
                row.copy_from_slice(&picture[start..start + row.len()]);
            }
        }
    }

    /// The transpose of [`gather`](Self::gather): every pixel becomes the sum of its copies in the patches.
    pub fn scatter(self, patches: &[f32], picture: &mut [f32]) {
        self.check(picture, patches);
        picture.fill(0.0);
        for (place, patch) in patches.chunks_exact(self.patch_len()).enumerate() {
            for (start, row) in self.rows(place).zip(patch.chunks_exact(self.run())) {
                let pixels = &mut picture[start..start + row.len()];
                pixels.iter_mut().zip(row).for_each(|(sum, copy)| *sum += copy);
            }
        }
    }

    /// Numbers in a row of a patch.
    fn run(self) -> usize {
        self.side * self.picture[2]
    }

    /// Where in the picture each row of the patch at `place` starts.
    fn rows(self, place: usize) -> impl Iterator<Item = usize> {
        let [_, width, channels] = self.picture;
        let columns = self.places()[1];
        let corner = (place / columns * width + place % columns) * channels;
        (0..self.side).map(move |row| corner + row * width * channels)
    }

    fn check(self, picture: &[f32], patches: &[f32]) {
        assert_eq!(picture.len(), self.picture_len(), "one picture");
        assert_eq!(patches.len(), self.patches_len(), "a place for every patch");
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Matrix, matmul};
    use super::*;
    use proptest::prelude::*;

    /// The convolution of one picture with one output.
    fn convolve(window: Window, picture: &[f32], weights: &[f32]) -> Vec<f32> {
        let places = window.places().iter().product();
        let mut patches = vec![f32::NAN; window.patches_len()];
        window.gather(picture, &mut patches);
        let mut map = vec![f32::NAN; places];
        let patches = Matrix::new(&patches, places, window.patch_len());
        matmul(patches, Matrix::new(weights, window.patch_len(), 1), &mut map, false);
        map
    }

    #[test]
    fn a_convolution_worked_by_hand() {
        // 1 2 3        1 2
        // 4 5 6   and  3 4: at the first place 1·1 + 2·2 + 4·3 + 5·4 = 37.
        // 7 8 9
        let window = Window::new([3, 3, 1], 2).unwrap();
        let picture = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        assert_eq!(convolve(window, &picture, &[1.0, 2.0, 3.0, 4.0]), [37.0, 47.0, 67.0, 77.0]);

        // The same picture as first channel, its negative as second: weights (1, 0), (0, 1), (0, 0), (2, 0).
        let window = Window::new([3, 3, 2], 2).unwrap();
        let picture: Vec<f32> = picture.iter().flat_map(|&x| [x, -x]).collect();
        let weights = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 2.0, 0.0];
        // At the first place 1 − 2 + 2·5 = 9.
        assert_eq!(convolve(window, &picture, &weights), [9.0, 11.0, 15.0, 17.0]);
    }

    #[test]
    fn a_picture_moved_by_a_pixel_moves_its_convolution_by_a_pixel() {
        let window = Window::new([6, 7, 1], 3).unwrap();
        let weights: Vec<f32> = (0..9u8).map(|i| f32::from(i * i) - 20.0).collect();
        let dot = |y: usize, x: usize| {
            let mut picture = vec![0.0; 42];
            picture[y * 7 + x] = 1.0;
            convolve(window, &picture, &weights)
        };
        let (there, moved) = (dot(2, 2), dot(3, 4));
        // A dot prints the weights upside down and mirrored; one down and two to the right, 5 columns to a row.
        assert_eq!(there[0], weights[8]);
        for y in 0..3 {
            for x in 0..3 {
                assert_eq!(moved[(y + 1) * 5 + x + 2], there[y * 5 + x]);
            }
        }
    }

    #[test]
    fn a_window_larger_than_the_picture_does_not_fit() {
        assert!(Window::new([4, 9, 1], 5).is_none());
        assert!(Window::new([9, 4, 1], 5).is_none());
        assert!(Window::new([5, 5, 1], 0).is_none());
        assert_eq!(Window::new([5, 6, 1], 5).unwrap().places(), [1, 2]);
    }

    proptest! {
        #[test]
        fn scattering_is_the_transpose_of_gathering(
            (side, below, beside, channels) in (1usize..4, 0usize..5, 0usize..5, 1usize..4),
            values in prop::collection::vec(-9i16..=9, 4000),
        ) {
            // ⟨gather(x), p⟩ = ⟨x, scatter(p)⟩, exactly, on small whole numbers.
            let (height, width) = (side + below, side + beside);
            let window = Window::new([height, width, channels], side).unwrap();
            let mut cycle = values.iter().cycle().map(|&v| f32::from(v));
            let x: Vec<f32> = cycle.by_ref().take(window.picture_len()).collect();
            let p: Vec<f32> = cycle.take(window.patches_len()).collect();
            let (mut gathered, mut scattered) = (vec![f32::NAN; p.len()], vec![f32::NAN; x.len()]);
            window.gather(&x, &mut gathered);
            window.scatter(&p, &mut scattered);
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            prop_assert_eq!(dot(&gathered, &p), dot(&x, &scattered));
        }
    }
}
