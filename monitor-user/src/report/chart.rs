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

/// Lanes that a chart can tell apart, the rest among them.
pub const MOST_LANES: usize = COLOURS.len() + 1;

/// Pixels of the legend's column, of a line of it, and of its square.
const LEGEND: u32 = 340;
const LINE: i32 = 20;
const SQUARE: i32 = 12;
/// Columns of a lane's name in the legend.
const NAME: usize = 38;

/// A moment with a line of its own in a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When, ns since boot.
    pub ns: u64,
    /// What it is called, escaped.
    pub name: String,
}

/// What a chart shows.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    /// Above it, escaped.
    pub title: String,
    /// Memory over time.
    pub lanes: &'a Lanes,
    /// Time to count from, ns since boot.
    pub origin_ns: u64,
    /// Moments that were marked.
    pub marks: Vec<Moment>,
    /// Width and height in pixels.
    pub size: (u32, u32),
}

impl<'a> Chart<'a> {
    /// Of a report, with its first `most_marks` marks. `size`: width and height in pixels.
    pub fn new(report: &Report, lanes: &'a Lanes, most_marks: usize, size: (u32, u32)) -> Self {
        let what = match lanes.quantity {
            Quantity::Rss => "RSS by program; pages that processes share count in each of them",
            Quantity::Vms => "VMS by program",
        };
        let marks = report.processes.iter().flat_map(|process| &process.marks);
        let mut marks: Vec<Moment> = marks
            .map(|mark| Moment {
                ns: mark.ns,
                name: escape(&mark.text.0),
            })
            .collect();
        marks.sort_by_key(|mark| mark.ns);
        marks.truncate(most_marks);
        Self {
            title: what.to_owned(),
            lanes,
            origin_ns: say::origin(report),
            marks,
            size,
        }
    }
}

/// Why a chart couldn't be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw: {0}")]
pub struct DrawError(String);

/// The chart as an SVG document.
///
/// # Errors
/// If it is too small for what must be in it.
pub fn svg(chart: &Chart<'_>) -> Result<String, DrawError> {
    let mut out = String::new();
    {
        let root = SVGBackend::with_string(&mut out, chart.size).into_drawing_area();
        draw(chart, &root).map_err(|error| DrawError(error.to_string()))?;
    }
    Ok(out)
}

type Failure = Box<dyn std::error::Error>;

fn draw(chart: &Chart<'_>, root: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), Failure> {
    root.fill(&plotters::style::WHITE)?;
    let (width, _) = chart.size;
    let (plot, legend) = root.split_horizontally(width.saturating_sub(LEGEND));
    let scale = Scale::of(chart);
    let what = match chart.lanes.quantity {
        Quantity::Rss => "RSS",
        Quantity::Vms => "VMS",
    };
    let mut context = ChartBuilder::on(&plot)
        .caption(&chart.title, style(16))
        .margin(8)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(scale.from..scale.to, 0.0..scale.most)?;
    context
        .configure_mesh()
        .disable_x_mesh()
        .max_light_lines(1)
        .light_line_style(RGBColor(245, 245, 245))
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
    let mut sums = chart.lanes.sums();
    let steps = |values: &[u64]| scale.steps(chart.lanes, values);
    let outline = steps(&sums);
    for (n, lane) in chart.lanes.lanes.iter().enumerate().rev() {
        let area = AreaSeries::new(steps(&sums), 0.0, colour(n, lane));
        context.draw_series(area)?;
        for (sum, value) in sums.iter_mut().zip(&lane.values) {
            *sum = sum.saturating_sub(*value);
        }
    }
    context.plotting_area().draw(&PathElement::new(
        outline,
        ShapeStyle::from(INK).stroke_width(1),
    ))?;
    for mark in &chart.marks {
        let x = scale.x(mark.ns);
        let line = PathElement::new(vec![(x, 0.0), (x, scale.most)], INK.mix(0.6));
        context.plotting_area().draw(&line)?;
        let name = Text::new(shorten(&mark.name, NAME), (x, scale.most * 0.99), style(11));
        context.plotting_area().draw(&name)?;
    }
    if let Some((x, y, _)) = scale.peak(chart.lanes) {
        let dot = Circle::new((x, y), 4, ShapeStyle::from(INK).filled());
        context.plotting_area().draw(&dot)?;
    }
    draw_legend(chart, &scale, &legend)
}

/// The highest sum, and the lanes' names with the most that each had, the topmost first.
fn draw_legend(
    chart: &Chart<'_>,
    scale: &Scale,
    area: &DrawingArea<SVGBackend<'_>, Shift>,
) -> Result<(), Failure> {
    let mut y = 40;
    let mut line = |text: String, square: Option<RGBColor>| -> Result<(), Failure> {
        match square {
            Some(colour) => {
                let corners = [(0, y), (SQUARE, y + SQUARE)];
                area.draw(&Rectangle::new(corners, colour.filled()))?;
            }
            None => area.draw(&Circle::new((SQUARE / 2, y + SQUARE / 2), 4, INK.filled()))?,
        }
        area.draw(&Text::new(text, (SQUARE + 6, y), style(12)))?;
        y += LINE;
        Ok(())
    };
    if let Some((_, _, peak)) = scale.peak(chart.lanes) {
        line(format!("highest sum: {}", Bytes(peak)), None)?;
    }
    for (n, lane) in chart.lanes.lanes.iter().enumerate().rev() {
        let text = format!(
            "{}, to {}",
            shorten(&lane.name, NAME),
            Bytes(lane.highest())
        );
        line(text, Some(colour(n, lane)))?;
    }
    Ok(())
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

/// From ns and bytes to what stands on the axes.
struct Scale {
    origin_ns: u64,
    ns: f64,
    time_unit: &'static str,
    bytes: f64,
    unit: &'static str,
    from: f64,
    to: f64,
    most: f64,
}

impl Scale {
    fn of(chart: &Chart<'_>) -> Self {
        let lanes = chart.lanes;
        let spans = lanes.lanes.first().map_or(0, |lane| lane.values.len()) as u64;
        let end_ns = lanes
            .start_ns
            .saturating_add(spans.saturating_mul(lanes.width_ns));
        let took = end_ns.saturating_sub(chart.origin_ns);
        let (ns, time_unit) = match took {
            0..2_000_000_000 => (1e6, "ms"),
            2_000_000_000..600_000_000_000 => (1e9, "s"),
            600_000_000_000..36_000_000_000_000 => (60e9, "minutes"),
            _ => (3600e9, "hours"),
        };
        let highest = lanes.sums().into_iter().max().unwrap_or(0);
        let (power, unit) = match highest {
            0..0x20_0000 => (10, "KiB"),
            0x20_0000..0x8000_0000 => (20, "MiB"),
            0x8000_0000..0x200_0000_0000 => (30, "GiB"),
            _ => (40, "TiB"),
        };
        let mut scale = Self {
            origin_ns: chart.origin_ns,
            ns,
            time_unit,
            bytes: 2_f64.powi(power),
            unit,
            from: 0.0,
            to: 1.0,
            most: 1.0,
        };
        scale.from = scale.x(lanes.start_ns).min(0.0);
        scale.to = scale.x(end_ns).max(scale.from + f64::EPSILON);
        scale.most = scale.y(highest).max(f64::MIN_POSITIVE) * 1.1;
        scale
    }

    fn x(&self, ns: u64) -> f64 {
        let since =
            float(ns.saturating_sub(self.origin_ns)) - float(self.origin_ns.saturating_sub(ns));
        since / self.ns
    }

    fn y(&self, bytes: u64) -> f64 {
        float(bytes) / self.bytes
    }

    /// Corners of a line that holds each value over its span: nothing between two values is made up.
    fn steps(&self, lanes: &Lanes, values: &[u64]) -> Vec<(f64, f64)> {
        let mut corners: Vec<(f64, f64)> = Vec::new();
        let mut at = lanes.start_ns;
        for (n, value) in values.iter().enumerate() {
            let is_new = n == 0 || values[n - 1] != *value;
            if is_new {
                if let Some((_, before)) = corners.last().copied() {
                    corners.push((self.x(at), before));
                }
                corners.push((self.x(at), self.y(*value)));
            }
            at = at.saturating_add(lanes.width_ns);
        }
        if let Some((_, last)) = corners.last().copied() {
            corners.push((self.x(at), last));
        }
        corners
    }

    /// Where the sum is highest for the first time, and that sum in bytes.
    fn peak(&self, lanes: &Lanes) -> Option<(f64, f64, u64)> {
        let sums = lanes.sums();
        let sum = *sums.iter().max()?;
        let span = sums.iter().position(|other| *other == sum)? as u64;
        let middle = lanes
            .width_ns
            .saturating_mul(span)
            .saturating_add(lanes.width_ns / 2);
        let x = self.x(lanes.start_ns.saturating_add(middle));
        Some((x, self.y(sum), sum))
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a picture has a thousand pixels"
)]
fn float(n: u64) -> f64 {
    n as f64
}
