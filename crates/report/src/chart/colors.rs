//! Colors that people with any kind of color vision can tell apart, on white and on black.

/// Eight colors for series: Okabe and Ito, "Color Universal Design" (2008), with a darker yellow,
/// which can be seen on white.
pub const SERIES: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8a6d00", "#4b5768"];

/// Viridis (Smith and van der Walt, 2015, CC0) at equal distances, dark and low first: it can be
/// read in gray and with any color vision.
const VIRIDIS: [[u8; 3]; 11] = [
    [68, 1, 84],
    [72, 36, 117],
    [65, 68, 135],
    [53, 95, 141],
    [42, 120, 142],
    [33, 145, 140],
    [34, 168, 132],
    [68, 191, 112],
    [122, 209, 81],
    [189, 223, 38],
    [253, 231, 37],
];

/// The colors that latency maps of this kind are known by: from cyan to magenta, through blue. The
/// short times are light, and with any color vision the long ones are darker.
const COOL: [[u8; 3]; 2] = [[0, 255, 255], [255, 0, 255]];

/// The colors of a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// From dark to light.
    Viridis,
    /// From cyan to magenta.
    Cool,
}

impl Palette {
    fn colors(self) -> &'static [[u8; 3]] {
        match self {
            Self::Viridis => &VIRIDIS,
            Self::Cool => &COOL,
        }
    }

    /// Whether text on the color of a share has to be white.
    pub fn is_dark(self, share: f64) -> bool {
        match self {
            Self::Viridis => share < 0.6,
            // Black on magenta has a contrast of 6.7.
            Self::Cool => false,
        }
    }
}

/// The color of a share, from 0 to 1.
pub fn scale_color(palette: Palette, share: f64) -> [u8; 3] {
    let colors = palette.colors();
    let place = share.clamp(0.0, 1.0) * (colors.len() - 1) as f64;
    let below = (place as usize).min(colors.len() - 2);
    let rest = place - below as f64;
    let mix = |channel: usize| {
        let (one, two) = (colors[below][channel], colors[below + 1][channel]);
        (f64::from(one) + (f64::from(two) - f64::from(one)) * rest).round() as u8
    };
    [mix(0), mix(1), mix(2)]
}

/// The same scale as stops from 0 to 1.
pub fn scale_stops(palette: Palette) -> Vec<(f64, String)> {
    let colors = palette.colors();
    let stop = |(nth, [red, green, blue]): (usize, &[u8; 3])| {
        (nth as f64 / (colors.len() - 1) as f64, format!("#{red:02x}{green:02x}{blue:02x}"))
    };
    colors.iter().enumerate().map(stop).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_becomes_lighter_or_darker_all_the_way() {
        let lightness = |palette: Palette, share: f64| {
            let [red, green, blue] = scale_color(palette, share).map(f64::from);
            0.2126 * red + 0.7152 * green + 0.0722 * blue
        };
        let steps = |palette: Palette| -> Vec<f64> {
            (0..=40).map(|step| lightness(palette, f64::from(step) / 40.0)).collect()
        };
        assert!(steps(Palette::Viridis).windows(2).all(|pair| pair[0] < pair[1]));
        assert!(steps(Palette::Cool).windows(2).all(|pair| pair[1] < pair[0]));
        assert_eq!(scale_stops(Palette::Viridis).len(), 11);
        assert_eq!(scale_color(Palette::Viridis, 2.0), [253, 231, 37]);
        assert_eq!(scale_color(Palette::Cool, 0.5), [128, 128, 255]);
    }
}
