//! Many small images on one page.

use super::FigureError;

/// Pixels between images and around them.
const GAP: usize = 2;
/// The gray of the background, between black and white images.
const PAPER: u8 = 0x80;
/// The size of the largest page in bytes.
const MAX_BYTES: usize = 1 << 28;

/// Images in rows, as the bytes of a PNG file.
///
/// Each image is `shape` = height, width and channels: one byte per channel, row by row, with one channel
/// (gray) or three (red, green, blue) per pixel. A row holds up to `columns` images, and every pixel
/// becomes a square of side `scale`.
pub fn contact_sheet<'a>(
    images: impl Iterator<Item = &'a [u8]>,
    shape: [usize; 3],
    columns: usize,
    scale: usize,
) -> Result<Vec<u8>, FigureError> {
    let [height, width, channels] = shape;
    let color = match channels {
        1 => png::ColorType::Grayscale,
        3 => png::ColorType::Rgb,
        _ => return Err(FigureError::Channels(channels)),
    };
    if height == 0 || width == 0 || columns == 0 || scale == 0 {
        return Err(FigureError::EmptyGrid { height, width, columns, scale });
    }
    let too_large = FigureError::TooLarge { limit: MAX_BYTES };
    let tile = |side: usize| side.checked_mul(scale)?.checked_add(GAP);
    let (Some(down), Some(across)) = (tile(height), tile(width)) else { return Err(too_large) };
    let smallest = down.checked_mul(across).and_then(|a| a.checked_mul(channels));
    let Some(max) = smallest.map(|bytes| MAX_BYTES / bytes).filter(|&max| max > 0) else {
        return Err(too_large);
    };

    let mut tiles: Vec<&[u8]> = Vec::new();
    for (index, image) in images.enumerate() {
        let expected = height * width * channels;
        if image.len() != expected {
            return Err(FigureError::PictureSize { index, expected, found: image.len() });
        }
        if tiles.len() == max {
            return Err(too_large);
        }
        tiles.push(image);
    }
    if tiles.is_empty() {
        return Err(FigureError::NoPictures);
    }

    let columns = columns.min(tiles.len());
    let page_width = columns * across + GAP;
    let page_height = tiles.len().div_ceil(columns) * down + GAP;
    let stride = page_width * channels;
    let mut page = vec![PAPER; stride * page_height];
    for (i, image) in tiles.iter().enumerate() {
        let (left, top) = (GAP + i % columns * across, GAP + i / columns * down);
        for y in 0..height * scale {
            let from = &image[y / scale * width * channels..][..width * channels];
            let to = &mut page[(top + y) * stride + left * channels..][..width * scale * channels];
            for (pixel, square) in from.chunks(channels).zip(to.chunks_mut(scale * channels)) {
                square.chunks_mut(channels).for_each(|p| p.copy_from_slice(pixel));
            }
        }
    }

    super::png_file(page_width, page_height, color, &page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(file: &[u8]) -> (usize, usize, Vec<u8>) {
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut page = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut page).unwrap();
        page.truncate(info.buffer_size());
        (info.width as usize, info.height as usize, page)
    }

    #[test]
    fn three_gray_images_fill_two_columns_in_order() {
        let images: [&[u8]; 3] = [&[1, 2], &[3, 4], &[5, 6]];
        let file = contact_sheet(images.into_iter(), [1, 2, 1], 2, 1).unwrap();
        let p = PAPER;
        #[rustfmt::skip]
        let page = [
            p, p, p, p, p, p, p, p, p, p,
            p, p, p, p, p, p, p, p, p, p,
            p, p, 1, 2, p, p, 3, 4, p, p,
            p, p, p, p, p, p, p, p, p, p,
            p, p, p, p, p, p, p, p, p, p,
            p, p, 5, 6, p, p, p, p, p, p,
            p, p, p, p, p, p, p, p, p, p,
            p, p, p, p, p, p, p, p, p, p,
        ];
        assert_eq!(decoded(&file), (10, 8, page.to_vec()));
    }

    #[test]
    fn a_color_image_is_enlarged_pixel_by_pixel() {
        let image: &[u8] = &[10, 20, 30, 40, 50, 60];
        let (width, height, page) = decoded(&contact_sheet([image].into_iter(), [1, 2, 3], 8, 2).unwrap());
        assert_eq!((width, height), (8, 6));
        for y in 2..4 {
            let row = &page[y * 24 + 6..][..12];
            assert_eq!(row, [10, 20, 30, 10, 20, 30, 40, 50, 60, 40, 50, 60]);
        }
    }

    #[test]
    fn images_that_cannot_be_drawn_are_refused_with_a_reason() {
        let sheet = |images: &[&[u8]], shape, columns, scale| {
            contact_sheet(images.iter().copied(), shape, columns, scale).unwrap_err().to_string()
        };
        assert!(sheet(&[], [1, 1, 1], 1, 1).contains("no images"));
        assert!(sheet(&[&[0]], [1, 1, 2], 1, 1).contains("2 channels"));
        assert!(sheet(&[&[0]], [1, 1, 1], 0, 1).contains("0 columns"));
        assert!(sheet(&[&[0], &[0, 0]], [1, 1, 1], 1, 1).contains("image 1"));
        assert!(sheet(&[&[0]], [1, 1, 1], 1, usize::MAX).contains("too large"));
        assert!(sheet(&[&[0]], [usize::MAX, 3, 1], 1, 1).contains("too large"));
    }

    #[test]
    fn a_page_beyond_the_limit_is_refused_before_it_is_drawn() {
        let endless = std::iter::repeat(&[0u8] as &[u8]);
        let refused = contact_sheet(endless, [1, 1, 1], 10, 1000);
        assert!(matches!(refused, Err(FigureError::TooLarge { .. })));
    }
}
