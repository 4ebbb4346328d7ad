//! Convolution as a matrix product: the patches of an image laid out as rows (`im2col`), and back.

/// A square window that moves over images of one shape, by one pixel at a time, within the image.
///
/// Images are height × width × channels, with the channels of a pixel adjacent. A patch is the part of
/// the image in the window at one position, in the same order, so a row of it is a run of `side ·
/// channels` adjacent numbers. The patches of an image times a matrix (patch length × outputs) are the
/// image's convolution: at position (y, x), Σ over (i, j, c) of image[y+i, x+j, c] · weight[(i, j, c),
/// output].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    image: [usize; 3],
    side: usize,
}

impl Window {
    /// A window of `side` × `side` pixels over images of shape `image`; none if it does not fit.
    pub fn new(image: [usize; 3], side: usize) -> Option<Self> {
        let [height, width, channels] = image;
        (side > 0 && channels > 0 && side <= height && side <= width).then_some(Self { image, side })
    }

    /// The number of positions of the window: rows and columns.
    pub fn positions(self) -> [usize; 2] {
        let [height, width, _] = self.image;
        [height - self.side + 1, width - self.side + 1]
    }

    /// Pixels in the window.
    pub fn area(self) -> usize {
        self.side * self.side
    }

    /// Numbers in an image.
    pub fn image_len(self) -> usize {
        self.image.iter().product()
    }

    /// Numbers in a patch.
    pub fn patch_len(self) -> usize {
        self.area() * self.image[2]
    }

    /// Numbers in all patches of an image.
    pub fn patches_len(self) -> usize {
        self.positions().iter().product::<usize>() * self.patch_len()
    }

    /// Writes the patches of `image`, position after position, row by row.
    pub fn gather(self, image: &[f32], patches: &mut [f32]) {
        self.check(image, patches);
        match self.run() {
            ..=8 => self.gather_by::<8>(image, patches),
            9..=16 => self.gather_by::<16>(image, patches),
            _ => self.gather_by::<0>(image, patches),
        }
    }

    /// As [`gather`](Self::gather), but with N numbers copied per row of a patch if the buffer allows it;
    /// the next row overwrites the surplus. A copy of known length takes two instructions, any other
    /// length takes a call.
    fn gather_by<const N: usize>(self, image: &[f32], patches: &mut [f32]) {
        let (run, mut at) = (self.run(), 0);
        for position in 0..self.positions().iter().product() {
            for start in self.rows(position) {
                match (image.get(start..start + N), patches.get_mut(at..at + N)) {
                    (Some(row), Some(patch)) if N >= run => patch.copy_from_slice(row),
                    _ => patches[at..at + run].copy_from_slice(&image[start..start + run]),
                }
                at += run;
            }
        }
    }

    /// The transpose of [`gather`](Self::gather): every pixel becomes the sum of its copies in the patches.
    pub fn scatter(self, patches: &[f32], image: &mut [f32]) {
        self.check(image, patches);
        image.fill(0.0);
        for (position, patch) in patches.chunks_exact(self.patch_len()).enumerate() {
            for (start, row) in self.rows(position).zip(patch.chunks_exact(self.run())) {
                let pixels = &mut image[start..start + row.len()];
                pixels.iter_mut().zip(row).for_each(|(sum, copy)| *sum += copy);
            }
        }
    }

    /// Pixels on a side of the window.
    pub(super) fn side(self) -> usize {
        self.side
    }

    /// Numbers in a pixel.
    pub(super) fn channels(self) -> usize {
        self.image[2]
    }

    /// Numbers in a row of an image.
    pub(super) fn line(self) -> usize {
        self.image[1] * self.image[2]
    }

    /// Numbers in a row of a patch.
    pub(crate) fn run(self) -> usize {
        self.side * self.image[2]
    }

    /// The start of each row of the patch at `position`, as an index into the image.
    fn rows(self, position: usize) -> impl Iterator<Item = usize> {
        let [_, width, channels] = self.image;
        let columns = self.positions()[1];
        let corner = (position / columns * width + position % columns) * channels;
        (0..self.side).map(move |row| corner + row * width * channels)
    }

    fn check(self, image: &[f32], patches: &[f32]) {
        assert_eq!(image.len(), self.image_len(), "one image");
        assert_eq!(patches.len(), self.patches_len(), "room for every patch");
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Matrix, matmul};
    use super::*;
    use proptest::prelude::*;

    /// The convolution of one image with one output.
    fn convolve(window: Window, image: &[f32], weights: &[f32]) -> Vec<f32> {
        let positions = window.positions().iter().product();
        let mut patches = vec![f32::NAN; window.patches_len()];
        window.gather(image, &mut patches);
        let mut map = vec![f32::NAN; positions];
        let patches = Matrix::new(&patches, positions, window.patch_len());
        matmul(patches, Matrix::new(weights, window.patch_len(), 1), &mut map, false);
        map
    }

    #[test]
    fn a_convolution_worked_by_hand() {
        // 1 2 3        1 2
        // 4 5 6   and  3 4: at the first position 1·1 + 2·2 + 4·3 + 5·4 = 37.
        // 7 8 9
        let window = Window::new([3, 3, 1], 2).unwrap();
        let image = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        assert_eq!(convolve(window, &image, &[1.0, 2.0, 3.0, 4.0]), [37.0, 47.0, 67.0, 77.0]);

        // The same image as first channel, its negative as second: weights (1, 0), (0, 1), (0, 0), (2, 0).
        let window = Window::new([3, 3, 2], 2).unwrap();
        let image: Vec<f32> = image.iter().flat_map(|&x| [x, -x]).collect();
        let weights = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 2.0, 0.0];
        // At the first position 1 − 2 + 2·5 = 9.
        assert_eq!(convolve(window, &image, &weights), [9.0, 11.0, 15.0, 17.0]);
    }

    #[test]
    fn an_image_moved_by_a_pixel_moves_its_convolution_by_a_pixel() {
        let window = Window::new([6, 7, 1], 3).unwrap();
        let weights: Vec<f32> = (0..9u8).map(|i| f32::from(i * i) - 20.0).collect();
        let dot = |y: usize, x: usize| {
            let mut image = vec![0.0; 42];
            image[y * 7 + x] = 1.0;
            convolve(window, &image, &weights)
        };
        let (there, moved) = (dot(2, 2), dot(3, 4));
        // The weights that a dot reads are turned by 180°: one row down and two columns to the right, 5
        // columns per row.
        assert_eq!(there[0], weights[8]);
        for y in 0..3 {
            for x in 0..3 {
                assert_eq!(moved[(y + 1) * 5 + x + 2], there[y * 5 + x]);
            }
        }
    }

    #[test]
    fn a_window_larger_than_the_image_does_not_fit() {
        assert!(Window::new([4, 9, 1], 5).is_none());
        assert!(Window::new([9, 4, 1], 5).is_none());
        assert!(Window::new([5, 5, 1], 0).is_none());
        assert_eq!(Window::new([5, 6, 1], 5).unwrap().positions(), [1, 2]);
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
            let x: Vec<f32> = cycle.by_ref().take(window.image_len()).collect();
            let p: Vec<f32> = cycle.take(window.patches_len()).collect();
            let (mut gathered, mut scattered) = (vec![f32::NAN; p.len()], vec![f32::NAN; x.len()]);
            window.gather(&x, &mut gathered);
            window.scatter(&p, &mut scattered);
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            prop_assert_eq!(dot(&gathered, &p), dot(&x, &scattered));
        }
    }
}
