//! Writer of SVG text: a few escaped elements, with coordinates rounded to one decimal so that equal runs give equal
//! bytes.

use std::fmt::Write as _;

/// Colours that people with any colour vision can distinguish (Okabe & Ito 2008).
pub const BLUE: &str = "#0072B2";
pub const ORANGE: &str = "#E69F00";
pub const GREEN: &str = "#009E73";
pub const VERMILION: &str = "#D55E00";
pub const PURPLE: &str = "#CC79A7";
pub const SKY: &str = "#56B4E9";
pub const YELLOW: &str = "#F0E442";
pub const BLACK: &str = "#000000";

/// Colours for lines of equal importance.
pub const PALETTE: [&str; 8] = [BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK, YELLOW];

const GRID: &str = "#e4e4e4";
const FRAME: &str = "#888888";

/// Anchor of a text.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture under construction.
#[derive(Debug)]
pub struct Svg {
    body: String,
    width: f64,
}

/// A rectangle on the picture.
#[derive(Debug, Clone, Copy)]
pub struct Rect {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// Escapes `text` for XML. Control characters, which XML cannot contain, are left out.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            control if control.is_control() => {}
            other => escaped.push(other),
        }
    }
    escaped
}

/// Estimates the width of a text of 12 pixels. Legends use it, where a small error does not matter.
pub fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 6.7
}

/// Formats a coordinate. A value that is not finite becomes zero, because it would make the whole picture unreadable.
fn at(value: f64) -> String {
    let text = format!("{:.1}", if value.is_finite() { value } else { 0.0 });
    if text == "-0.0" { "0".to_owned() } else { text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned) }
}

impl Svg {
    pub fn new(width: f64) -> Self {
        Self { body: String::new(), width }
    }

    /// Returns the whole picture, with this height.
    pub fn finish(self, height: f64) -> String {
        let (width, height) = (at(self.width), at(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{}</svg>\n",
            self.body
        )
    }

    // Writing to a `String` cannot fail.
    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        let _ = self.body.write_fmt(element);
        self.body.push('\n');
    }

    pub fn text(&mut self, x: f64, y: f64, anchor: Anchor, text: &str) {
        self.styled(x, y, anchor, "fill=\"#222222\"", text);
    }

    pub fn bold(&mut self, x: f64, y: f64, size: u32, text: &str) {
        let style = format!("font-weight=\"bold\" font-size=\"{size}\" fill=\"#111111\"");
        self.styled(x, y, Anchor::Start, &style, text);
    }

    pub fn faint(&mut self, x: f64, y: f64, anchor: Anchor, text: &str) {
        self.styled(x, y, anchor, "fill=\"#555555\" font-size=\"11\"", text);
    }

    /// Draws the title of a vertical axis, rotated to read upward.
    pub fn upright(&mut self, x: f64, y: f64, text: &str) {
        let style = format!("fill=\"#222222\" transform=\"rotate(-90 {} {})\"", at(x), at(y));
        self.styled(x, y, Anchor::Middle, &style, text);
    }

    fn styled(&mut self, x: f64, y: f64, anchor: Anchor, style: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y, text) = (at(x), at(y), escape(text));
        self.put(format_args!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" {style}>{text}</text>"));
    }

    pub fn bar(&mut self, rect: Rect, colour: &str) {
        let Rect { x, y, width, height } = rect;
        let [x, y, width, height] = [x, y, width, height].map(at);
        self.put(format_args!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\"/>"));
    }

    /// Draws the border of a panel.
    pub fn frame(&mut self, rect: Rect) {
        let Rect { x, y, width, height } = rect;
        let [x, y, width, height] = [x, y, width, height].map(at);
        self.put(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"{FRAME}\"/>"
        ));
    }

    pub fn grid(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.stroke(&[from, to], GRID, 1.0, false);
    }

    pub fn stroke(&mut self, points: &[(f64, f64)], colour: &str, width: f64, dashed: bool) {
        let dashes = if dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        let (points, width) = (list(points), at(width));
        self.put(format_args!(
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-linejoin=\"round\"{dashes}/>"
        ));
    }

    /// Draws a filled outline.
    pub fn fill(&mut self, points: &[(f64, f64)], colour: &str) {
        let points = list(points);
        self.put(format_args!("<polygon points=\"{points}\" fill=\"{colour}\" fill-opacity=\"0.45\"/>"));
    }
}

fn list(points: &[(f64, f64)]) -> String {
    points.iter().map(|&(x, y)| format!("{},{}", at(x), at(y))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_non_finite_numbers_become_zero() {
        assert_eq!(escape("a<b> & \"c\"\u{0} 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
        assert_eq!([1.0, 1.25, -0.01, f64::NAN, f64::INFINITY].map(at), ["1", "1.2", "0", "0", "0"]);
    }
}
