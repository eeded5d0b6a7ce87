//! Memory over time as a picture: lanes on top of each other, in SVG.

use plotters::{
    coord::Shift,
    prelude::{
        AreaSeries, ChartBuilder, Circle, DrawingArea, IntoDrawingArea, PathElement, RGBColor,
        Rectangle, SVGBackend, Text,
    },
    style::{Color, IntoFont, ShapeStyle, TextStyle},
};

use crate::{
    model::Quantity,
    report::{
        Report,
        escape::{escape, shorten},
        lanes::{Lane, Lanes},
        say,
    },
    units::Bytes,
};

/// Colours that people with any kind of colour blindness can tell apart (Okabe and Ito, 2008), without the yellow,
/// which is too pale on white, and black, which is for lines.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
];
/// Colour of what isn't told apart.
const REST: RGBColor = RGBColor(160, 160, 160);
const INK: RGBColor = RGBColor(40, 40, 40);

/// Lanes that a picture can tell apart, the rest among them.
pub const MOST_LANES: usize = COLOURS.len() + 1;

/// Pixels of the legend's column, of a line of it, and of its square.
const LEGEND: u32 = 340;
const LINE: i32 = 20;
const SQUARE: i32 = 12;
/// Columns of a lane's name in the legend.
const NAME: usize = 38;

/// A moment with a line of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When, ns since boot.
    pub ns: u64,
    /// What it is called, escaped.
    pub name: String,
}

/// A recording in a picture.
#[derive(Clone, Debug)]
pub struct Panel<'a> {
    /// Above it, escaped.
    pub title: String,
    /// Memory over time.
    pub lanes: &'a Lanes,
    /// Time to count from, ns since boot.
    pub origin_ns: u64,
    /// When the sum was highest, ns since boot, and that sum in bytes, where it is known more exactly than the lanes
    /// are: they follow each process in steps, which the kernel side's running sum doesn't.
    pub highest: Option<(u64, u64)>,
    /// Moments that were marked.
    pub marks: Vec<Moment>,
}

impl<'a> Panel<'a> {
    /// Of a report. Of its marks the first `most_marks` are shown.
    pub fn new(title: String, report: &Report, lanes: &'a Lanes, most_marks: usize) -> Self {
        let marks = report.processes.iter().flat_map(|process| &process.marks);
        let mut marks: Vec<Moment> = marks
            .map(|mark| Moment {
                ns: mark.ns,
                name: escape(&mark.text.0),
            })
            .collect();
        marks.sort_by_key(|mark| mark.ns);
        marks.truncate(most_marks);
        let tree = &report.tree;
        let highest = match lanes.quantity {
            Quantity::Rss => tree.peak_rss_sum_ns.zip(tree.peak_rss_sum_bytes),
            Quantity::Vms => None,
        };
        Self {
            title,
            lanes,
            origin_ns: say::origin(report),
            highest,
            marks,
        }
    }

    /// When the sum was highest, ns since boot, and that sum in bytes.
    fn peak(&self) -> Option<(u64, u64)> {
        let drawn = highest_span(self.lanes)?;
        // Lanes may be of a part of the tree, and of a recording that was cut off they know the last moments.
        let exact = self.highest.filter(|(_, sum)| *sum >= drawn.1);
        Some(exact.unwrap_or(drawn))
    }
}

/// Why a picture couldn't be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw: {0}")]
pub struct DrawError(String);

/// A picture in SVG: the recordings below each other, with the same axes and colours. Their lanes must be the same, as
/// [`crate::report::lanes::tell_apart`] makes them. `size`: width and height of the whole in pixels.
///
/// # Errors
/// If it is too small for what must be in it.
pub fn svg(panels: &[Panel<'_>], size: (u32, u32)) -> Result<String, DrawError> {
    let mut out = String::new();
    {
        let root = SVGBackend::with_string(&mut out, size).into_drawing_area();
        draw(panels, &root).map_err(|error| DrawError(error.to_string()))?;
    }
    Ok(out)
}

type Failure = Box<dyn std::error::Error>;
type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw(panels: &[Panel<'_>], root: &Canvas<'_>) -> Result<(), Failure> {
    root.fill(&plotters::style::WHITE)?;
    let (width, _) = root.dim_in_pixel();
    let (plots, legend) = root.split_horizontally(width.saturating_sub(LEGEND));
    let scale = Scale::of(panels);
    let areas = plots.split_evenly((panels.len().max(1), 1));
    for (panel, area) in panels.iter().zip(&areas) {
        draw_panel(panel, &scale, area)?;
    }
    draw_legend(panels, &legend)
}

fn draw_panel(panel: &Panel<'_>, scale: &Scale, area: &Canvas<'_>) -> Result<(), Failure> {
    let mut context = ChartBuilder::on(area)
        .caption(&panel.title, style(15))
        .margin(8)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(scale.from..scale.to, 0.0..scale.most)?;
    let what = match panel.lanes.quantity {
        Quantity::Rss => "RSS",
        Quantity::Vms => "VMS",
    };
    context
        .configure_mesh()
        .disable_x_mesh()
        .max_light_lines(1)
        .bold_line_style(RGBColor(225, 225, 225))
        .axis_style(INK)
        .label_style(style(12))
        .axis_desc_style(style(13))
        .x_desc(format!("time since the start, {}", scale.time_unit))
        .y_desc(format!("{what}, {}", scale.unit))
        .x_label_formatter(&|x| number(*x))
        .y_label_formatter(&|y| number(*y))
        .draw()?;
    // Every lane is drawn from zero up to its sum with those below it, so the topmost comes first.
    let mut sums = panel.lanes.sums();
    let outline = scale.steps(panel, &sums);
    for (n, lane) in panel.lanes.lanes.iter().enumerate().rev() {
        let area = AreaSeries::new(scale.steps(panel, &sums), 0.0, colour(n, lane));
        context.draw_series(area)?;
        for (sum, value) in sums.iter_mut().zip(&lane.values) {
            *sum = sum.saturating_sub(*value);
        }
    }
    let plot = context.plotting_area();
    plot.draw(&PathElement::new(
        outline,
        ShapeStyle::from(INK).stroke_width(1),
    ))?;
    for mark in &panel.marks {
        let x = scale.x(panel, mark.ns);
        plot.draw(&PathElement::new(
            vec![(x, 0.0), (x, scale.most)],
            INK.mix(0.6),
        ))?;
        let name = shorten(&mark.name, NAME);
        plot.draw(&Text::new(name, (x, scale.most * 0.99), style(11)))?;
    }
    if let Some((ns, sum)) = panel.peak() {
        let at = (scale.x(panel, ns), scale.y(sum));
        plot.draw(&Circle::new(at, 4, ShapeStyle::from(INK).filled()))?;
        let text = Text::new(
            Bytes(sum).to_string(),
            (at.0, at.1 + scale.most * 0.06),
            style(12),
        );
        plot.draw(&text)?;
    }
    Ok(())
}

/// Names of the lanes with the most that each had, the topmost first.
fn draw_legend(panels: &[Panel<'_>], area: &Canvas<'_>) -> Result<(), Failure> {
    let lanes = panels.first().map_or(&[][..], |panel| &panel.lanes.lanes);
    let mut y = 40;
    for (n, lane) in lanes.iter().enumerate().rev() {
        let corners = [(0, y), (SQUARE, y + SQUARE)];
        area.draw(&Rectangle::new(corners, colour(n, lane).filled()))?;
        let highest = panels.iter().filter_map(|panel| panel.lanes.lanes.get(n));
        let highest = highest.map(Lane::highest).max().unwrap_or(0);
        let text = format!("{}: {}", shorten(&lane.name, NAME), Bytes(highest));
        area.draw(&Text::new(text, (SQUARE + 6, y), style(12)))?;
        y += LINE;
    }
    Ok(())
}

/// Middle of the span in which the sum is highest for the first time, ns since boot, and that sum in bytes.
fn highest_span(lanes: &Lanes) -> Option<(u64, u64)> {
    let sums = lanes.sums();
    let sum = *sums.iter().max()?;
    let span = sums.iter().position(|other| *other == sum)? as u64;
    let middle = lanes.width_ns.saturating_mul(span) + lanes.width_ns / 2;
    Some((lanes.start_ns.saturating_add(middle), sum))
}

fn colour(n: usize, lane: &Lane) -> RGBColor {
    if lane.is_rest {
        return REST;
    }
    COLOURS[n % COLOURS.len()]
}

fn style(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

/// A number on an axis, without more digits than it needs.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// From ns and bytes to what stands on the axes, which all panels share.
struct Scale {
    ns: f64,
    time_unit: &'static str,
    bytes: f64,
    unit: &'static str,
    from: f64,
    to: f64,
    most: f64,
}

impl Scale {
    fn of(panels: &[Panel<'_>]) -> Self {
        let took = panels
            .iter()
            .map(|panel| panel.lanes.end_ns().saturating_sub(panel.origin_ns));
        let (ns, time_unit) = match took.max().unwrap_or(0) {
            0..2_000_000_000 => (1e6, "ms"),
            2_000_000_000..600_000_000_000 => (1e9, "s"),
            600_000_000_000..36_000_000_000_000 => (60e9, "minutes"),
            _ => (3600e9, "hours"),
        };
        let highest = panels.iter().filter_map(Panel::peak);
        let highest = highest.map(|(_, sum)| sum).max().unwrap_or(0);
        let (power, unit) = match highest {
            0..0x20_0000 => (10, "KiB"),
            0x20_0000..0x8000_0000 => (20, "MiB"),
            0x8000_0000..0x200_0000_0000 => (30, "GiB"),
            _ => (40, "TiB"),
        };
        let mut scale = Self {
            ns,
            time_unit,
            bytes: 2_f64.powi(power),
            unit,
            from: 0.0,
            to: f64::MIN_POSITIVE,
            most: f64::MIN_POSITIVE,
        };
        for panel in panels {
            scale.from = scale.from.min(scale.x(panel, panel.lanes.start_ns));
            scale.to = scale.to.max(scale.x(panel, panel.lanes.end_ns()));
        }
        // Room for what is written at the peak.
        scale.most = scale.most.max(scale.y(highest) * 1.15);
        scale
    }

    fn x(&self, panel: &Panel<'_>, ns: u64) -> f64 {
        let origin = panel.origin_ns;
        let since = float(ns.saturating_sub(origin)) - float(origin.saturating_sub(ns));
        since / self.ns
    }

    fn y(&self, bytes: u64) -> f64 {
        float(bytes) / self.bytes
    }

    /// Corners of a line that holds each value over its span: nothing between two values is made up.
    fn steps(&self, panel: &Panel<'_>, values: &[u64]) -> Vec<(f64, f64)> {
        let mut corners: Vec<(f64, f64)> = Vec::new();
        let mut at = panel.lanes.start_ns;
        for (n, value) in values.iter().enumerate() {
            if n == 0 || values[n - 1] != *value {
                if let Some((_, before)) = corners.last().copied() {
                    corners.push((self.x(panel, at), before));
                }
                corners.push((self.x(panel, at), self.y(*value)));
            }
            at = at.saturating_add(panel.lanes.width_ns);
        }
        if let Some((_, last)) = corners.last().copied() {
            corners.push((self.x(panel, at), last));
        }
        corners
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a picture has a thousand pixels"
)]
fn float(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::lanes::Lane;

    fn lanes(values: &[&[u64]]) -> Lanes {
        let lane = |(n, values): (usize, &&[u64])| Lane {
            name: format!("program {n}"),
            is_rest: false,
            values: values.to_vec(),
        };
        Lanes {
            quantity: Quantity::Rss,
            start_ns: 1_000_000_000,
            width_ns: 1_000_000,
            spans: values[0].len(),
            lanes: values.iter().enumerate().map(lane).collect(),
        }
    }

    fn panel(lanes: &Lanes) -> Panel<'_> {
        Panel {
            title: "a & b".to_owned(),
            lanes,
            origin_ns: 1_000_000_000,
            highest: None,
            marks: Vec::new(),
        }
    }

    #[test]
    fn values_hold_until_the_next_one() {
        let lanes = lanes(&[&[1 << 21, 1 << 21, 5 << 20, 0]]);
        let panel = panel(&lanes);
        let scale = Scale::of(std::slice::from_ref(&panel));
        assert_eq!((scale.unit, scale.time_unit), ("MiB", "ms"));
        let corners = scale.steps(&panel, &lanes.lanes[0].values);
        let expected = [(0., 2.), (2., 2.), (2., 5.), (3., 5.), (3., 0.), (4., 0.)];
        assert_eq!(corners, expected);
        assert_eq!(panel.peak(), Some((1_002_500_000, 5 << 20)));
    }

    #[test]
    fn the_peak_is_the_one_that_the_report_tells() {
        let lanes = lanes(&[&[2 << 20, 5 << 20, 2 << 20]]);
        // Steps of a process hide what is above them; a sum below the lanes is older than they are.
        for (told, expected) in [
            ((1_001_900_000, (5 << 20) + 60_000), None),
            ((1_000_100_000, 4 << 20), Some((1_001_500_000, 5 << 20))),
        ] {
            let panel = Panel {
                highest: Some(told),
                ..panel(&lanes)
            };
            let expected = expected.unwrap_or(told);
            assert_eq!(panel.peak(), Some(expected));
            let picture = svg(&[panel], (900, 300)).unwrap();
            assert!(picture.contains(&Bytes(expected.1).to_string()));
        }
    }

    #[test]
    fn lanes_stand_on_each_other() {
        let lanes = lanes(&[&[1 << 20, 1 << 20], &[2 << 20, 3 << 20]]);
        let picture = svg(&[panel(&lanes)], (900, 300)).unwrap();
        // The top of each area: the sum first, the lowest lane last, and higher is a smaller number.
        let tops: Vec<i32> = picture
            .lines()
            .filter(|line| line.starts_with("<polygon"))
            .map(|line| {
                let points = line.split("points=\"").nth(1).unwrap();
                let heights = points.split([' ', '"']).filter_map(|p| p.split_once(','));
                heights
                    .map(|(_, y)| y.parse::<i32>().unwrap())
                    .min()
                    .unwrap()
            })
            .collect();
        assert_eq!(tops.len(), 2);
        assert!(tops[0] < tops[1], "{tops:?}");
        assert!(picture.contains("4.0 MiB") && picture.contains("a &amp; b"));
    }

    #[test]
    fn pictures_of_nothing_and_of_much_can_be_drawn() {
        for values in [&[][..], &[0], &[u64::MAX / 4, 0, u64::MAX / 4]] {
            let lanes = lanes(&[values, values]);
            let panels = [panel(&lanes), panel(&lanes)];
            assert!(svg(&panels, (900, 600)).unwrap().ends_with("</svg>\n"));
        }
        assert!(svg(&[], (900, 300)).is_ok());
    }
}
