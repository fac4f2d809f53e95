#include "engine/tune/pareto_chart.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/human_units.h"
#include "base/xml_writer.h"
#include "engine/optimize/report/layer_chart.h"
#include "engine/tune/quality.h"

namespace optfarm::tune {
namespace {

// UNITS: pixels.
constexpr int kWidth = 760;
constexpr int kHeight = 460;
constexpr double kLeft = 70, kRight = 560, kTop = 50, kBottom = 400;
constexpr double kLeastRadius = 4, kMostRadius = 11;
// UNITS: share of an axis left free at its ends.
constexpr double kMargin = 0.06;

// From values to pixels.
struct Axis {
  double low = 0, high = 1;
  double from = 0, to = 1;

  void Include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double At(double value) const {
    const double room = std::max(high - low, 1e-9) * (1 + 2 * kMargin);
    const double share = (value - low) / room + kMargin;
    return from + std::clamp(share, 0.0, 1.0) * (to - from);
  }
};

double Shown(const v1::TunedVariant& variant) {
  return variant.has_held_out_quality() ? variant.held_out_quality()
                                        : variant.quality();
}

void Line(double x1, double y1, double x2, double y2, absl::string_view color,
          XmlWriter& svg) {
  svg.Begin("line")
      .Attribute("x1", x1, 1)
      .Attribute("y1", y1, 1)
      .Attribute("x2", x2, 1)
      .Attribute("y2", y2, 1)
      .Attribute("stroke", color)
      .End();
}

void Words(double x, double y, absl::string_view anchor, absl::string_view text,
           XmlWriter& svg) {
  svg.Begin("text")
      .Attribute("x", x, 1)
      .Attribute("y", y, 1)
      .Attribute("text-anchor", anchor)
      .Text(text)
      .End();
}

bool IsRecommended(const v1::TunedVariant& variant,
                   const v1::TunedDevice& device) {
  return variant.name() == device.recommended() &&
         variant.threads() == device.recommended_threads();
}

void DrawVariant(const v1::TunedVariant& variant, bool recommended,
                 const Axis& x, const Axis& y, XmlWriter& svg) {
  const double at_x = x.At(variant.latency_us());
  const double at_y = y.At(Shown(variant));
  const double radius = std::clamp(
      kMostRadius * std::sqrt(variant.size_ratio()), kLeastRadius, kMostRadius);
  svg.Begin("g").Attribute("opacity", variant.dominated() ? 0.3 : 1.0, 1);
  Line(x.At(variant.latency_low_us()), at_y, x.At(variant.latency_high_us()),
       at_y, "#555555", svg);
  svg.Begin("circle")
      .Attribute("cx", at_x, 1)
      .Attribute("cy", at_y, 1)
      .Attribute("r", radius, 1)
      .Attribute("stroke", variant.meets_bound() ? "#2e86c1" : "#c0392b")
      .Attribute("stroke-width", 2)
      .Attribute("fill", recommended ? "#2e86c1" : "#ffffff")
      .End();
  Words(at_x + radius + 4, at_y + 4, "start", variant.name(), svg);
  svg.End();
}

}  // namespace

std::string DrawPareto(const v1::TunedDevice& device,
                       v1::TuneReport::Measure measure, double bound) {
  Axis x{0, device.float_us(), kLeft, kRight};
  Axis y{bound, bound, kBottom, kTop};
  for (const v1::TunedVariant& variant : device.variants()) {
    x.Include(variant.latency_high_us());
    y.Include(Shown(variant));
  }
  std::string text;
  XmlWriter svg(text);
  optfarm::optimize::BeginChart(kWidth, kHeight, svg);
  Words(kLeft, 24, "start",
        absl::StrCat("Variants on ", device.device(), ": latency, and ",
                     MeasureTitle(measure), "; larger points are larger files"),
        svg);
  Line(kLeft, kBottom, kRight, kBottom, "#888888", svg);
  Line(kLeft, kTop, kLeft, kBottom, "#888888", svg);
  Line(kLeft, y.At(bound), kRight, y.At(bound), "#c0392b", svg);
  Words(kRight + 4, y.At(bound) + 4, "start",
        absl::StrCat("bound ", QualityText(bound, measure)), svg);
  for (const double value : {x.low, (x.low + x.high) / 2, x.high}) {
    Words(x.At(value), kBottom + 18, "middle", HumanMicroseconds(value), svg);
  }
  for (const double value : {y.low, y.high}) {
    Words(kLeft - 6, y.At(value) + 4, "end", QualityText(value, measure), svg);
  }
  for (const v1::TunedVariant& variant : device.variants()) {
    DrawVariant(variant, IsRecommended(variant, device), x, y, svg);
  }
  svg.End();
  return text;
}

}  // namespace optfarm::tune
