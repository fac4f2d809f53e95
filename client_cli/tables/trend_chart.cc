#include "client_cli/tables/trend_chart.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/number_text.h"
#include "base/xml_writer.h"

namespace optfarm::client_cli {
namespace {

constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr size_t kLevels = std::size(kBlocks);

// UNITS: pixels.
constexpr double kWidth = 900;
constexpr double kHeight = 420;
constexpr double kLeft = 80;
constexpr double kRight = 20;
constexpr double kTop = 30;
constexpr double kBottom = 40;
constexpr double kLegendLine = 18;
constexpr int kGridLines = 5;

// Told apart by people who do not see all colours (Okabe and Ito).
constexpr const char* kColors[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                   "#E69F00", "#56B4E9", "#000000"};

// The next of 1, 2, 5, 10, 20, ... times a power of ten.
double RoundUp(double value) {
  if (!(value > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 2.5, 5.0}) {
    if (value <= step * power) return step * power;
  }
  return 10 * power;
}

// What is drawn where.
struct Frame {
  absl::Time first = absl::InfiniteFuture();
  absl::Time last = absl::InfinitePast();
  double most = 0;

  double X(absl::Time time) const {
    if (last <= first) return kLeft;
    return kLeft + (kWidth - kLeft - kRight) *
                       absl::FDivDuration(time - first, last - first);
  }
  double Y(double value) const {
    return kHeight - kBottom -
           (kHeight - kTop - kBottom) * std::clamp(value / most, 0.0, 1.0);
  }
};

Frame FrameOf(absl::Span<const TrendLine> lines) {
  Frame frame;
  for (const TrendLine& line : lines) {
    for (const TrendPoint& point : line.points) {
      frame.first = std::min(frame.first, point.time);
      frame.last = std::max(frame.last, point.time);
      if (std::isfinite(point.value)) {
        frame.most = std::max(frame.most, point.value);
      }
    }
  }
  frame.most = RoundUp(frame.most);
  return frame;
}

void DrawText(double x, double y, absl::string_view anchor,
              absl::string_view text, XmlWriter& svg) {
  svg.Begin("text")
      .Attribute("x", x, 1)
      .Attribute("y", y, 1)
      .Attribute("text-anchor", anchor)
      .Text(text)
      .End();
}

void DrawAxes(const Frame& frame, const std::string& unit, double scale,
              XmlWriter& svg) {
  for (int i = 0; i <= kGridLines; ++i) {
    const double value = frame.most * i / kGridLines;
    const double y = frame.Y(value);
    svg.Begin("line")
        .Attribute("x1", kLeft, 1)
        .Attribute("y1", y, 1)
        .Attribute("x2", kWidth - kRight, 1)
        .Attribute("y2", y, 1)
        .Attribute("stroke", "#ddd")
        .End();
    DrawText(kLeft - 8, y + 4, "end", absl::StrFormat("%.4g", value / scale),
             svg);
  }
  DrawText(kLeft, kTop - 12, "start", unit, svg);
  if (frame.first > frame.last) return;
  const auto date = [](absl::Time time) {
    return absl::FormatTime("%Y-%m-%d %H:%M", time, absl::UTCTimeZone());
  };
  DrawText(kLeft, kHeight - kBottom + 20, "start", date(frame.first), svg);
  DrawText(kWidth - kRight, kHeight - kBottom + 20, "end",
           absl::StrCat(date(frame.last), " UTC"), svg);
}

void DrawLine(const Frame& frame, const TrendLine& line,
              absl::string_view color, double scale, XmlWriter& svg) {
  std::string text;
  for (const TrendPoint& point : line.points) {
    AppendFixed(frame.X(point.time), 1, text);
    text.push_back(',');
    AppendFixed(frame.Y(point.value), 1, text);
    text.push_back(' ');
  }
  svg.Begin("polyline")
      .Attribute("fill", "none")
      .Attribute("stroke", color)
      .Attribute("stroke-width", "1.5")
      .Attribute("points", text)
      .End();
  for (const TrendPoint& point : line.points) {
    text.clear();
    AppendUtcTime(point.time, text);
    text.append("+00:00: ");
    AppendNumber(point.value / scale, 4, text);
    if (point.doubtful) text.append(" (noisy)");
    svg.Begin("circle")
        .Attribute("cx", frame.X(point.time), 1)
        .Attribute("cy", frame.Y(point.value), 1)
        .Attribute("r", 3)
        .Attribute("fill", point.doubtful ? "#fff" : color)
        .Attribute("stroke", color);
    svg.Begin("title").Text(text).End().End();
  }
}

}  // namespace

std::string Sparkline(absl::Span<const double> values, size_t width) {
  if (values.size() > width) values.remove_prefix(values.size() - width);
  if (values.empty()) return "";
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  std::string line;
  for (const double value : values) {
    size_t level = kLevels / 2;
    if (*most > *least) {
      level = static_cast<size_t>((value - *least) / (*most - *least) *
                                      static_cast<double>(kLevels - 1) +
                                  0.5);
    }
    line += kBlocks[std::min(level, kLevels - 1)];
  }
  return line;
}

std::string TrendSvg(absl::Span<const TrendLine> lines, const std::string& unit,
                     double scale) {
  const Frame frame = FrameOf(lines);
  const double height =
      kHeight + kLegendLine * static_cast<double>(lines.size()) + 10;
  std::string document;
  XmlWriter svg(document);
  svg.Begin("svg")
      .Attribute("xmlns", "http://www.w3.org/2000/svg")
      .Attribute("viewBox", absl::StrFormat("0 0 %.0f %.0f", kWidth, height))
      .Attribute("font-family", "sans-serif")
      .Attribute("font-size", 12);
  svg.Begin("rect")
      .Attribute("width", "100%")
      .Attribute("height", "100%")
      .Attribute("fill", "#fff")
      .End();
  DrawAxes(frame, unit, scale, svg);
  for (size_t i = 0; i < lines.size(); ++i) {
    const char* color = kColors[i % std::size(kColors)];
    DrawLine(frame, lines[i], color, scale, svg);
    const double y = kHeight + kLegendLine * static_cast<double>(i);
    svg.Begin("rect")
        .Attribute("x", kLeft, 1)
        .Attribute("y", y, 1)
        .Attribute("width", 12)
        .Attribute("height", 12)
        .Attribute("fill", color)
        .End();
    DrawText(kLeft + 20, y + 10, "start", lines[i].label, svg);
  }
  svg.End();
  return document;
}

}  // namespace optfarm::client_cli
