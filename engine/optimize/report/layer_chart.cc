#include "engine/optimize/report/layer_chart.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace optfarm::optimize {
namespace {

// UNITS: pixels.
constexpr int kRowHeight = 16;
constexpr int kHeadHeight = 44;
constexpr int kNameWidth = 420;
constexpr int kBarWidth = 480;
constexpr int kNumberWidth = 70;
// UNITS: decibel. The scale's ends; what lies beyond is drawn at the end.
constexpr double kLeast = 0;
constexpr double kMost = 60;
constexpr int kStep = 10;
// UNITS: characters of a name; the end of a long one tells more.
constexpr size_t kNameLength = 58;

double Position(double snr) {
  if (std::isnan(snr)) snr = kLeast;
  return (std::clamp(snr, kLeast, kMost) - kLeast) / (kMost - kLeast) *
         kBarWidth;
}

absl::string_view Color(double snr) {
  if (snr < 10) return "#c0392b";
  if (snr < 20) return "#e08e0b";
  return "#2e86c1";
}

void DrawScale(int height, XmlWriter& svg) {
  for (int db = static_cast<int>(kLeast); db <= kMost; db += kStep) {
    const double x = kNameWidth + Position(db);
    svg.Begin("line")
        .Attribute("x1", x, 1)
        .Attribute("y1", kHeadHeight)
        .Attribute("x2", x, 1)
        .Attribute("y2", height)
        .Attribute("stroke", "#cccccc")
        .End();
    svg.Begin("text")
        .Attribute("x", x, 1)
        .Attribute("y", kHeadHeight - 6)
        .Attribute("text-anchor", "middle")
        .Text(absl::StrCat(db))
        .End();
  }
}

std::string Number(double snr) {
  if (std::isnan(snr)) return "not comparable";
  if (std::isinf(snr)) return snr > 0 ? "equal" : "lost";
  return absl::StrFormat("%.1f", snr);
}

// One bar.
struct Bar {
  double snr = 0;
  absl::string_view color;
};

// A layer with one bar, or two that share its row.
struct Row {
  std::string name;
  std::string op;
  std::vector<Bar> bars;
};

void DrawRow(const Row& row, int y, XmlWriter& svg) {
  std::string name = row.name;
  if (name.size() > kNameLength) {
    name = absl::StrCat("...", name.substr(name.size() - kNameLength + 3));
  }
  svg.Begin("g");
  svg.Begin("title").Text(absl::StrCat(row.name, " (", row.op, ")")).End();
  svg.Begin("text")
      .Attribute("x", kNameWidth - 6)
      .Attribute("y", y + kRowHeight - 4)
      .Attribute("text-anchor", "end")
      .Text(name)
      .End();
  const double height = (kRowHeight - 4) / static_cast<double>(std::max<size_t>(
                                               1, row.bars.size()));
  double top = y + 2;
  double end = 0;
  std::vector<std::string> numbers;
  for (const Bar& bar : row.bars) {
    svg.Begin("rect")
        .Attribute("x", kNameWidth)
        .Attribute("y", top, 1)
        .Attribute("width", std::max(1.0, Position(bar.snr)), 1)
        .Attribute("height", height, 1)
        .Attribute("fill", bar.color)
        .End();
    top += height;
    end = std::max(end, Position(bar.snr));
    numbers.push_back(Number(bar.snr));
  }
  svg.Begin("text")
      .Attribute("x", kNameWidth + end + 5, 1)
      .Attribute("y", y + kRowHeight - 4)
      .Text(absl::StrJoin(numbers, " / "))
      .End();
  svg.End();
}

std::string Draw(absl::Span<const Row> rows, absl::string_view title) {
  const int height =
      kHeadHeight + kRowHeight * static_cast<int>(rows.size()) + 4;
  std::string document;
  XmlWriter svg(document);
  BeginChart(kNameWidth + kBarWidth + kNumberWidth, height, svg);
  svg.Begin("text")
      .Attribute("x", kNameWidth)
      .Attribute("y", 16)
      .Attribute("font-size", 13)
      .Text(title)
      .End();
  DrawScale(height, svg);
  int y = kHeadHeight;
  for (const Row& row : rows) {
    DrawRow(row, y, svg);
    y += kRowHeight;
  }
  svg.End();
  return document;
}

}  // namespace

void BeginChart(int width, int height, XmlWriter& svg) {
  svg.Begin("svg")
      .Attribute("xmlns", "http://www.w3.org/2000/svg")
      .Attribute("width", width)
      .Attribute("height", height)
      .Attribute("viewBox", absl::StrCat("0 0 ", width, " ", height))
      .Attribute("font-family", "sans-serif")
      .Attribute("font-size", 11);
  svg.Begin("rect")
      .Attribute("width", "100%")
      .Attribute("height", "100%")
      .Attribute("fill", "white")
      .End();
}

std::string DrawLayers(absl::Span<const v1::TensorComparison> layers) {
  std::vector<Row> rows;
  for (const v1::TensorComparison& layer : layers) {
    if (layer.samples() == 0) continue;
    rows.push_back(
        {layer.name(), layer.op(), {{layer.snr_db(), Color(layer.snr_db())}}});
  }
  return Draw(rows,
              "Signal to noise of each layer, dB, in the order of computation");
}

std::string DrawSensitivity(absl::Span<const v1::LayerSensitivity> layers) {
  constexpr absl::string_view kAlone = "#7fb3d5";
  std::vector<Row> rows;
  for (const v1::LayerSensitivity& layer : layers) {
    rows.push_back(
        {layer.name(),
         layer.op(),
         {{layer.alone_snr_db(), kAlone},
          {layer.cumulative_snr_db(), Color(layer.cumulative_snr_db())}}});
  }
  return Draw(rows,
              "Signal to noise of each layer, dB: quantized alone / with all "
              "others");
}

}  // namespace optfarm::optimize
