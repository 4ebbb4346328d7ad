//! The written forms of each digit, as pen strokes through a few knots.
//!
//! Coordinates are in the unit square, x to the right and y down; a digit is about one unit high.

/// A point the pen passes through.
#[derive(Clone, Copy, Debug)]
pub(super) struct Knot {
    pub x: f32,
    pub y: f32,
    /// Whether the pen changes direction here at once instead of following a curve.
    pub corner: bool,
}

/// A line without lifting the pen: at least two knots.
pub(super) type Stroke = &'static [Knot];

/// One form of a digit.
#[derive(Debug)]
pub(super) struct Form {
    /// Its weight in the random choice among the forms of its digit.
    pub share: u64,
    pub strokes: &'static [Stroke],
}

/// A knot on a curve.
const fn s(x: f32, y: f32) -> Knot {
    Knot { x, y, corner: false }
}

/// A knot at a corner.
const fn c(x: f32, y: f32) -> Knot {
    Knot { x, y, corner: true }
}

/// The forms of each digit.
#[rustfmt::skip]
pub(super) static FORMS: [&[Form]; 10] = [
    // 0: closed oval, narrow oval whose end overshoots the start, round, not quite closed.
    &[
        Form { share: 4, strokes: &[&[
            s(0.55, 0.00), s(0.24, 0.16), s(0.12, 0.55), s(0.24, 0.90), s(0.50, 1.00), s(0.78, 0.85),
            s(0.88, 0.48), s(0.77, 0.13), s(0.50, 0.00),
        ]] },
        Form { share: 3, strokes: &[&[
            s(0.66, 0.12), s(0.44, 0.01), s(0.25, 0.25), s(0.20, 0.62), s(0.34, 0.94), s(0.58, 0.98),
            s(0.77, 0.72), s(0.79, 0.36), s(0.66, 0.07), s(0.46, 0.02), s(0.36, 0.12),
        ]] },
        Form { share: 3, strokes: &[&[
            s(0.48, 0.08), s(0.16, 0.24), s(0.04, 0.55), s(0.20, 0.86), s(0.52, 0.94), s(0.85, 0.80),
            s(0.97, 0.48), s(0.82, 0.18), s(0.50, 0.06),
        ]] },
        Form { share: 2, strokes: &[&[
            s(0.38, 0.08), s(0.18, 0.34), s(0.16, 0.68), s(0.36, 0.97), s(0.66, 0.94), s(0.84, 0.64),
            s(0.82, 0.28), s(0.62, 0.04), s(0.48, 0.03),
        ]] },
    ],
    // 1: a plain stroke, a leaning one, with a flag, with flag and foot.
    &[
        Form { share: 4, strokes: &[&[s(0.50, 0.00), s(0.50, 0.50), s(0.50, 1.00)]] },
        Form { share: 3, strokes: &[&[s(0.64, 0.00), s(0.51, 0.50), s(0.38, 1.00)]] },
        Form { share: 3, strokes: &[&[s(0.30, 0.24), c(0.53, 0.00), s(0.53, 0.50), s(0.52, 1.00)]] },
        Form { share: 1, strokes: &[
            &[s(0.28, 0.22), c(0.53, 0.00), s(0.53, 0.50), s(0.52, 0.98)],
            &[s(0.24, 1.00), s(0.52, 0.98), s(0.80, 0.99)],
        ] },
    ],
    // 2: pointed base, looped base, flat like a Z, a hook with a wavy base.
    &[
        Form { share: 4, strokes: &[&[
            s(0.15, 0.24), s(0.32, 0.04), s(0.60, 0.01), s(0.79, 0.20), s(0.69, 0.48), s(0.42, 0.76),
            c(0.12, 1.00), s(0.50, 0.97), s(0.90, 0.99),
        ]] },
        Form { share: 4, strokes: &[&[
            s(0.16, 0.20), s(0.40, 0.00), s(0.72, 0.10), s(0.75, 0.38), s(0.54, 0.70), s(0.26, 0.95),
            s(0.09, 0.92), s(0.16, 0.77), s(0.40, 0.84), s(0.66, 0.98), s(0.93, 0.90),
        ]] },
        Form { share: 2, strokes: &[&[
            s(0.16, 0.12), s(0.48, 0.03), s(0.80, 0.09), s(0.72, 0.36), s(0.44, 0.66), c(0.14, 0.95),
            s(0.50, 0.92), s(0.88, 0.95),
        ]] },
        Form { share: 2, strokes: &[&[
            s(0.26, 0.34), s(0.26, 0.10), s(0.50, 0.00), s(0.70, 0.14), s(0.64, 0.46), s(0.42, 0.78),
            c(0.16, 0.97), s(0.40, 0.90), s(0.64, 0.99), s(0.88, 0.93),
        ]] },
    ],
    // 3: two bowls meeting in a cusp, a flat top, a small loop at the waist, a large lower bowl.
    &[
        Form { share: 4, strokes: &[&[
            s(0.19, 0.13), s(0.46, 0.00), s(0.73, 0.14), s(0.68, 0.37), c(0.40, 0.47), s(0.71, 0.55),
            s(0.82, 0.78), s(0.57, 0.99), s(0.16, 0.89),
        ]] },
        Form { share: 2, strokes: &[&[
            s(0.18, 0.04), s(0.48, 0.03), c(0.78, 0.02), c(0.44, 0.39), s(0.74, 0.49), s(0.84, 0.73),
            s(0.60, 0.98), s(0.16, 0.91),
        ]] },
        Form { share: 2, strokes: &[&[
            s(0.20, 0.12), s(0.50, 0.00), s(0.74, 0.16), s(0.64, 0.40), s(0.41, 0.51), s(0.36, 0.45),
            s(0.52, 0.44), s(0.77, 0.61), s(0.74, 0.89), s(0.46, 1.00), s(0.16, 0.88),
        ]] },
        Form { share: 2, strokes: &[&[
            s(0.28, 0.07), s(0.50, 0.00), s(0.66, 0.12), s(0.60, 0.30), c(0.40, 0.38), s(0.72, 0.45),
            s(0.86, 0.70), s(0.64, 0.96), s(0.22, 0.97),
        ]] },
    ],
    // 4: open, closed, in one stroke like a lightning bolt, open with a long stem and a short bar.
    &[
        Form { share: 4, strokes: &[
            &[s(0.25, 0.03), s(0.19, 0.30), c(0.14, 0.55), s(0.50, 0.56), s(0.88, 0.53)],
            &[s(0.70, 0.06), s(0.67, 0.50), s(0.64, 1.00)],
        ] },
        Form { share: 3, strokes: &[
            &[s(0.64, 0.01), s(0.39, 0.31), c(0.10, 0.62), s(0.50, 0.64), s(0.93, 0.61)],
            &[s(0.64, 0.01), s(0.65, 0.50), s(0.64, 1.00)],
        ] },
        Form { share: 3, strokes: &[&[
            s(0.22, 0.04), s(0.15, 0.34), s(0.34, 0.52), s(0.66, 0.42), c(0.80, 0.03), s(0.71, 0.50),
            s(0.62, 1.00),
        ]] },
        Form { share: 2, strokes: &[
            &[s(0.20, 0.10), s(0.17, 0.34), s(0.30, 0.47), s(0.54, 0.46), s(0.76, 0.42)],
            &[s(0.78, 0.00), s(0.70, 0.46), s(0.58, 1.00)],
        ] },
    ],
    // 5: the bar drawn last, all in one stroke, nearly an S, a deep bowl under a short neck.
    &[
        Form { share: 4, strokes: &[
            &[s(0.30, 0.03), s(0.27, 0.22), c(0.24, 0.43), s(0.52, 0.37), s(0.79, 0.56), s(0.76, 0.85),
              s(0.46, 1.00), s(0.13, 0.91)],
            &[s(0.30, 0.03), s(0.58, 0.04), s(0.88, 0.00)],
        ] },
        Form { share: 3, strokes: &[&[
            s(0.84, 0.02), s(0.58, 0.02), c(0.31, 0.04), c(0.23, 0.44), s(0.50, 0.38), s(0.76, 0.54),
            s(0.75, 0.84), s(0.46, 0.99), s(0.14, 0.93),
        ]] },
        Form { share: 2, strokes: &[&[
            s(0.84, 0.05), s(0.52, 0.02), s(0.27, 0.20), s(0.40, 0.41), s(0.69, 0.56), s(0.74, 0.82),
            s(0.48, 1.00), s(0.14, 0.91),
        ]] },
        Form { share: 2, strokes: &[
            &[s(0.34, 0.04), c(0.26, 0.35), s(0.58, 0.32), s(0.84, 0.55), s(0.74, 0.88), s(0.44, 0.98),
              s(0.20, 0.82)],
            &[s(0.34, 0.04), s(0.60, 0.05), s(0.80, 0.02)],
        ] },
    ],
    // 6: an even curve, a straight back with a small loop, a curled top, a wide low loop.
    &[
        Form { share: 4, strokes: &[&[
            s(0.70, 0.00), s(0.42, 0.20), s(0.22, 0.50), s(0.19, 0.80), s(0.45, 1.00), s(0.75, 0.88),
            s(0.77, 0.65), s(0.52, 0.53), s(0.24, 0.70),
        ]] },
        Form { share: 3, strokes: &[&[
            s(0.46, 0.00), s(0.30, 0.35), s(0.22, 0.70), s(0.33, 0.96), s(0.60, 0.98), s(0.74, 0.80),
            s(0.61, 0.63), s(0.38, 0.68), s(0.25, 0.86),
        ]] },
        Form { share: 2, strokes: &[&[
            s(0.80, 0.12), s(0.60, 0.01), s(0.33, 0.18), s(0.16, 0.55), s(0.24, 0.88), s(0.52, 1.00),
            s(0.80, 0.80), s(0.67, 0.54), s(0.40, 0.53), s(0.20, 0.72),
        ]] },
        Form { share: 2, strokes: &[&[
            s(0.52, 0.00), s(0.24, 0.30), s(0.10, 0.66), s(0.26, 0.93), s(0.60, 0.98), s(0.88, 0.82),
            s(0.76, 0.62), s(0.44, 0.62), s(0.16, 0.80),
        ]] },
    ],
    // 7: plain, barred, with a serif, rounded.
    &[
        Form { share: 4, strokes: &[&[
            s(0.12, 0.07), s(0.50, 0.05), c(0.88, 0.03), s(0.62, 0.48), s(0.44, 1.00),
        ]] },
        Form { share: 2, strokes: &[
            &[s(0.12, 0.07), s(0.50, 0.05), c(0.88, 0.03), s(0.63, 0.48), s(0.46, 1.00)],
            &[s(0.32, 0.54), s(0.58, 0.51), s(0.84, 0.49)],
        ] },
        Form { share: 2, strokes: &[&[
            s(0.13, 0.24), c(0.17, 0.05), s(0.50, 0.06), c(0.85, 0.04), s(0.66, 0.42), s(0.54, 1.00),
        ]] },
        Form { share: 3, strokes: &[&[
            s(0.14, 0.13), s(0.44, 0.03), s(0.76, 0.05), s(0.76, 0.32), s(0.60, 0.64), s(0.50, 1.00),
        ]] },
    ],
    // 8: a crossing figure, two rings, an S closed by an open top, a small head on a large body.
    &[
        Form { share: 4, strokes: &[&[
            s(0.72, 0.17), s(0.50, 0.00), s(0.27, 0.17), s(0.37, 0.40), s(0.64, 0.58), s(0.77, 0.80),
            s(0.50, 1.00), s(0.22, 0.82), s(0.36, 0.58), s(0.64, 0.38), s(0.73, 0.15),
        ]] },
        Form { share: 2, strokes: &[
            &[s(0.52, 0.46), s(0.28, 0.34), s(0.30, 0.08), s(0.54, 0.00), s(0.74, 0.14), s(0.70, 0.38),
              s(0.50, 0.46)],
            &[s(0.50, 0.47), s(0.22, 0.62), s(0.24, 0.92), s(0.52, 1.00), s(0.80, 0.88), s(0.76, 0.60),
              s(0.52, 0.46)],
        ] },
        Form { share: 3, strokes: &[&[
            s(0.78, 0.12), s(0.52, 0.00), s(0.26, 0.18), s(0.42, 0.43), s(0.70, 0.66), s(0.64, 0.95),
            s(0.34, 0.98), s(0.24, 0.74), s(0.48, 0.46), s(0.68, 0.27), s(0.82, 0.06),
        ]] },
        Form { share: 2, strokes: &[&[
            s(0.62, 0.12), s(0.48, 0.01), s(0.33, 0.14), s(0.42, 0.34), s(0.72, 0.54), s(0.82, 0.80),
            s(0.52, 1.00), s(0.19, 0.84), s(0.30, 0.54), s(0.57, 0.33), s(0.64, 0.12),
        ]] },
    ],
    // 9: ring and straight stem, ring and hooked tail, small ring with a leaning stem, open ring.
    &[
        Form { share: 4, strokes: &[&[
            s(0.75, 0.16), s(0.50, 0.00), s(0.23, 0.16), s(0.25, 0.42), s(0.50, 0.49), s(0.72, 0.34),
            c(0.77, 0.12), s(0.74, 0.52), s(0.68, 1.00),
        ]] },
        Form { share: 3, strokes: &[&[
            s(0.76, 0.16), s(0.52, 0.00), s(0.23, 0.16), s(0.24, 0.42), s(0.50, 0.50), s(0.74, 0.34),
            c(0.78, 0.12), s(0.78, 0.54), s(0.65, 0.88), s(0.38, 1.00), s(0.17, 0.90),
        ]] },
        Form { share: 2, strokes: &[&[
            s(0.76, 0.11), s(0.55, 0.01), s(0.33, 0.16), s(0.36, 0.36), s(0.58, 0.38), s(0.74, 0.20),
            c(0.78, 0.08), s(0.66, 0.52), s(0.46, 1.00),
        ]] },
        Form { share: 2, strokes: &[&[
            s(0.70, 0.03), s(0.36, 0.06), s(0.19, 0.30), s(0.36, 0.48), s(0.62, 0.38), c(0.76, 0.06),
            s(0.76, 0.46), s(0.73, 0.98),
        ]] },
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_has_several_forms_inside_the_unit_square_and_every_stroke_is_a_line() {
        for forms in FORMS {
            assert!(forms.len() >= 4);
            for form in forms {
                assert!(form.share > 0 && !form.strokes.is_empty());
                for stroke in form.strokes {
                    assert!(stroke.len() >= 3);
                    assert!(stroke.iter().all(|k| (0.0..=1.0).contains(&k.x) && (0.0..=1.0).contains(&k.y)));
                }
            }
        }
    }
}
