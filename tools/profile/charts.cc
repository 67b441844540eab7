#include "tools/profile/charts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "framework/base/strings.h"
#include "tools/plan/numbers.h"
#include "tools/profile/html.h"

namespace penstock::profile {
namespace {

constexpr double kLeft = 64, kTop = 16, kWidth = 640, kHeight = 320;  // of the plot
constexpr std::size_t kColoursMax = 7;  // op types with a colour of their own; charts and page.cc agree

// Part of each drawing, so that it keeps its colours outside of the page; page.cc has those of the legends.
constexpr char kChartStyle[] = R"(<style>
svg text { font: 12px sans-serif; fill: currentColor; }
.plot { fill: none; stroke: #999; } .grid { stroke: #999; stroke-width: .3; }
.roof { stroke: #d55e00; stroke-width: 2; } .planned { stroke: #d55e00; stroke-dasharray: 6 4; }
.phase { stroke: #999; stroke-dasharray: 2 3; } circle { fill-opacity: .6; }
circle.c0 { fill: #0072b2; } circle.c1 { fill: #e69f00; } circle.c2 { fill: #009e73; }
circle.c3 { fill: #cc79a7; } circle.c4 { fill: #56b4e9; } circle.c5 { fill: #d55e00; }
circle.c6 { fill: #b8a900; } circle.c7 { fill: #999; }
rect.m0 { fill: #7a8a99; } rect.m1 { fill: #009e73; } rect.m2 { fill: #cc79a7; } rect.m3 { fill: #e69f00; }
path.live { fill: #56b4e9; }
</style>
)";

// Coordinates of a plot, of values between two bounds.
class Scale {
 public:
  Scale(double from, double to, double begin, double end, bool log)
      : from_(log ? std::log10(from) : from),
        to_(log ? std::log10(to) : to),
        begin_(begin),
        end_(end),
        log_(log) {}
  double At(double value) const {
    const double v = log_ ? std::log10(value) : value;
    return begin_ + (v - from_) / (to_ - from_) * (end_ - begin_);
  }

 private:
  double from_, to_, begin_, end_;
  bool log_;
};

std::string Line(double x1, double y1, double x2, double y2, std::string_view style) {
  return StrCat("<line class=\"", style, "\" x1=\"", Coordinate(x1), "\" y1=\"", Coordinate(y1), "\" x2=\"",
                Coordinate(x2), "\" y2=\"", Coordinate(y2), "\"/>\n");
}
std::string Label(double x, double y, std::string_view anchor, std::string_view text) {
  return StrCat("<text x=\"", Coordinate(x), "\" y=\"", Coordinate(y), "\" text-anchor=\"", anchor, "\">",
                Escaped(text), "</text>\n");
}

std::string Begin(std::string_view title) {
  return StrCat("<svg viewBox=\"0 0 ", Coordinate(kLeft + kWidth + 24), " ", Coordinate(kTop + kHeight + 52),
                "\" role=\"img\" aria-label=\"", Escaped(title), "\">\n", kChartStyle,
                "<rect class=\"plot\" x=\"", Coordinate(kLeft), "\" y=\"", Coordinate(kTop), "\" width=\"",
                Coordinate(kWidth), "\" height=\"", Coordinate(kHeight), "\"/>\n");
}

std::string XTick(double x, std::string_view text) {
  return Line(x, kTop, x, kTop + kHeight, "grid") + Label(x, kTop + kHeight + 18, "middle", text);
}
std::string YTick(double y, std::string_view text) {
  return Line(kLeft, y, kLeft + kWidth, y, "grid") + Label(kLeft - 6, y + 4, "end", text);
}
std::string Axes(std::string_view x, std::string_view y) {
  return StrCat(Label(kLeft + kWidth / 2, kTop + kHeight + 42, "middle", x),
                "<text transform=\"translate(14 ", Coordinate(kTop + kHeight / 2),
                ") rotate(-90)\" text-anchor=\"middle\">", Escaped(y), "</text>\n");
}

// A step of a scale: 1, 2 or 5 times a power of ten, about `most` / 5.
double StepOf(double most) {
  const double power = std::pow(10, std::floor(std::log10(most / 5)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (power * factor * 6 >= most) return power * factor;
  }
  return power * 10;
}

// A number at a scale, without zeros at its end.
std::string TickText(double value) {
  std::string text = value < 1 ? tools::Fixed(value, 6) : Short(value);
  if (text.find('.') == std::string::npos) return text;
  text.resize(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

struct Decades {
  int from = 0, to = 0;
  double low() const { return std::pow(10, from); }
  double high() const { return std::pow(10, to); }
};
Decades DecadesOf(double least, double most) {
  Decades decades{static_cast<int>(std::floor(std::log10(least))),
                  static_cast<int>(std::ceil(std::log10(most)))};
  if (decades.to <= decades.from) decades.to = decades.from + 1;
  return decades;
}

// An op on the roofline.
struct Point {
  const OpRow* op;
  double intensity, rate;  // operations per byte; GFLOP/s
};

std::vector<Point> PointsOf(const Report& report) {
  std::vector<Point> points;
  for (const OpRow& op : report.ops) {
    if (!op.flops || !op.bytes || *op.flops <= 0 || *op.bytes <= 0 || op.ns <= 0) continue;
    points.push_back({&op, *op.flops / *op.bytes, *op.flops / static_cast<double>(op.ns)});
  }
  // Small circles are drawn over large ones.
  std::ranges::stable_sort(points, {}, [](const Point& point) { return -point.op->ns; });
  return points;
}

std::string PointText(const Point& point, const Report& report) {
  return StrCat(point.op->type, " ", point.op->result, " : ", point.op->result_type, ", ",
                Short(static_cast<double>(point.op->ns) / 1e3), " us, ", Short(point.rate), " GFLOP/s of ",
                Short(std::min(report.peaks.flops, point.intensity * report.peaks.bytes) / 1e9));
}

std::string Circle(const Point& point, double x, double y, std::size_t colour, const Report& report) {
  const double share =
      static_cast<double>(point.op->ns) / std::max<double>(1, static_cast<double>(report.median_ns));
  const double radius = std::clamp(30 * std::sqrt(share), 3.0, 16.0);
  return StrCat("<circle class=\"c", colour, "\" cx=\"", Coordinate(x), "\" cy=\"", Coordinate(y), "\" r=\"",
                Coordinate(radius), "\"><title>", Escaped(PointText(point, report)), "</title></circle>\n");
}

// The types on the chart, the longest first: their number is their colour.
std::vector<std::string> ColouredTypes(const Report& report, const std::vector<Point>& points) {
  std::vector<std::string> types;
  for (const TypeRow& row : report.types) {
    const auto is_of = [&](const Point& point) { return point.op->type == row.type; };
    if (types.size() < kColoursMax && std::ranges::any_of(points, is_of)) types.push_back(row.type);
  }
  return types;
}

std::string Legend(const std::vector<std::string>& types, bool others) {
  std::string out = "<p class=\"legend\">";
  for (std::size_t k = 0; k < types.size(); ++k)
    out += StrCat("<span><i class=\"c", k, "\"></i>", Escaped(types[k]), "</span> ");
  if (others) out += StrCat("<span><i class=\"c", kColoursMax, "\"></i>other types</span>");
  return out + "</p>\n";
}

// The highest memory in each column of the chart, of what changes.
std::vector<double> Columns(const Report& report, double ns_of_run) {
  std::vector<double> columns(static_cast<std::size_t>(kWidth), 0);
  const std::vector<std::size_t>& live = report.memory.live;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const std::int64_t end = i + 1 < live.size() ? report.begins[i + 1] : report.median_ns;
    const auto at = [&](std::int64_t ns) {
      return std::clamp(static_cast<double>(ns) / ns_of_run * kWidth, 0.0, kWidth - 1);
    };
    for (auto c = static_cast<std::size_t>(at(report.begins[i])); c <= static_cast<std::size_t>(at(end)); ++c)
      columns[c] = std::max(columns[c], static_cast<double>(live[i]));
  }
  return columns;
}

// The area between the constant part and the columns.
std::string LiveArea(const std::vector<double>& columns, double constant, const Scale& y) {
  std::string path = StrCat("M", Coordinate(kLeft), " ", Coordinate(y.At(constant)));
  double drawn = -1;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (columns[c] == drawn) continue;
    path +=
        StrCat("H", Coordinate(kLeft + static_cast<double>(c)), "V", Coordinate(y.At(constant + columns[c])));
    drawn = columns[c];
  }
  return StrCat("<path class=\"live\" d=\"", path, "H", Coordinate(kLeft + kWidth), "V",
                Coordinate(y.At(constant)), "Z\"/>\n");
}

std::string Band(std::string_view style, std::string_view name, double from, double bytes, const Scale& y) {
  if (bytes <= 0) return "";
  return StrCat("<rect class=\"", style, "\" x=\"", Coordinate(kLeft), "\" y=\"",
                Coordinate(y.At(from + bytes)), "\" width=\"", Coordinate(kWidth), "\" height=\"",
                Coordinate(y.At(from) - y.At(from + bytes)), "\"><title>", Escaped(name), ": ",
                tools::Size(static_cast<std::int64_t>(bytes)), "</title></rect>\n");
}

std::string MemoryTicks(double ms, double mb, const Scale& x, const Scale& y) {
  std::string out;
  const double x_step = StepOf(ms), y_step = StepOf(mb);
  for (int k = 0; k * x_step <= ms; ++k) out += XTick(x.At(k * x_step), TickText(k * x_step));
  for (int k = 0; k * y_step <= mb; ++k) out += YTick(y.At(k * y_step * 1e6), TickText(k * y_step));
  return out;
}

}  // namespace

std::string RooflineChart(const Report& report) {
  const std::vector<Point> points = PointsOf(report);
  if (points.empty()) return "";
  const double peak = report.peaks.flops / 1e9, ridge = report.peaks.flops / report.peaks.bytes;
  double least_x = ridge, most_x = ridge, least_y = peak, most_y = peak;
  for (const Point& point : points) {
    least_x = std::min(least_x, point.intensity), most_x = std::max(most_x, point.intensity);
    least_y = std::min(least_y, point.rate), most_y = std::max(most_y, point.rate);
  }
  const Decades xs = DecadesOf(least_x, most_x * 1.01), ys = DecadesOf(least_y, most_y * 1.01);
  const Scale x(xs.low(), xs.high(), kLeft, kLeft + kWidth, true);
  const Scale y(ys.low(), ys.high(), kTop + kHeight, kTop, true);
  std::string out = Begin("Roofline: operations per second of each op by its operations per byte");
  for (int d = xs.from; d <= xs.to; ++d) out += XTick(x.At(std::pow(10, d)), TickText(std::pow(10, d)));
  for (int d = ys.from; d <= ys.to; ++d) out += YTick(y.At(std::pow(10, d)), TickText(std::pow(10, d)));
  out += Axes("operations per byte", "GFLOP/s");
  // The slope begins where it enters the plot.
  const double begin = std::max(xs.low(), ys.low() * 1e9 / report.peaks.bytes);
  out += Line(x.At(begin), y.At(begin * report.peaks.bytes / 1e9), x.At(ridge), y.At(peak), "roof");
  out += Line(x.At(ridge), y.At(peak), x.At(xs.high()), y.At(peak), "roof");
  const std::vector<std::string> types = ColouredTypes(report, points);
  bool others = false;
  for (const Point& point : points) {
    const auto colour = static_cast<std::size_t>(std::ranges::find(types, point.op->type) - types.begin());
    const bool coloured = colour < types.size();
    others |= !coloured;
    out += Circle(point, x.At(point.intensity), y.At(point.rate), coloured ? colour : kColoursMax, report);
  }
  return StrCat(out, "</svg>\n", Legend(types, others));
}

std::string MemoryChart(const Report& report) {
  const LiveMemory& memory = report.memory;
  const auto ns = static_cast<double>(std::max<std::int64_t>(1, report.median_ns));
  const double most = std::max(1.0, static_cast<double>(memory.Constant() + memory.arena));
  const Scale x(0, ns / 1e6, kLeft, kLeft + kWidth, false);
  const Scale y(0, most * 1.08, kTop + kHeight, kTop, false);
  std::string out = Begin("Memory of a step by time");
  out += MemoryTicks(ns / 1e6, most * 1.08 / 1e6, x, y);
  out += Axes("ms since the step began", "MB");
  double from = 0;
  const auto band = [&](std::string_view style, std::string_view name, std::size_t bytes) {
    out += Band(style, name, from, static_cast<double>(bytes), y);
    from += static_cast<double>(bytes);
  };
  band("m0", "persistable variables", memory.persistable);
  band("m1", "feeds", memory.fed);
  band("m2", "temporaries with buffers of their own", memory.own_buffers);
  band("m3", "workspace of kernels", memory.workspace);
  out += LiveArea(Columns(report, ns), from, y);
  const double planned = y.At(from + static_cast<double>(memory.arena));
  out += Line(kLeft, planned, kLeft + kWidth, planned, "planned");
  for (const Phase& phase : report.phases) {
    const double at = x.At(static_cast<double>(phase.ns) / 1e6);
    const bool fits = at < kLeft + 0.85 * kWidth;  // to the right of the line
    out += Line(at, kTop, at, kTop + kHeight, "phase");
    out += Label(fits ? at + 4 : at - 4, kTop + 14, fits ? "start" : "end", phase.name);
  }
  return out + "</svg>\n";
}

}  // namespace penstock::profile
