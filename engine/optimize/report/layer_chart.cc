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

void DrawScale(int height, std::string* svg) {
  for (int db = static_cast<int>(kLeast); db <= kMost; db += kStep) {
    const double x = kNameWidth + Position(db);
    absl::StrAppendFormat(
        svg,
        "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" "
        "stroke=\"#cccccc\"/>\n"
        "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n",
        x, kHeadHeight, x, height, x, kHeadHeight - 6, db);
  }
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

void DrawRow(const Row& row, int y, std::string* svg) {
  std::string name = row.name;
  if (name.size() > kNameLength) {
    name = absl::StrCat("...", name.substr(name.size() - kNameLength + 3));
  }
  absl::StrAppendFormat(
      svg,
      "<g><title>%s (%s)</title>\n"
      "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n",
      EscapedForXml(row.name), EscapedForXml(row.op), kNameWidth - 6,
      y + kRowHeight - 4, EscapedForXml(name));
  const double height = (kRowHeight - 4) / static_cast<double>(std::max<size_t>(
                                               1, row.bars.size()));
  double top = y + 2;
  double end = 0;
  std::vector<std::string> numbers;
  for (const Bar& bar : row.bars) {
    absl::StrAppendFormat(
        svg,
        "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
        "fill=\"%s\"/>\n",
        kNameWidth, top, std::max(1.0, Position(bar.snr)), height,
        std::string(bar.color));
    top += height;
    end = std::max(end, Position(bar.snr));
    numbers.push_back(std::isinf(bar.snr) && bar.snr > 0
                          ? "equal"
                          : absl::StrFormat("%.1f", bar.snr));
  }
  absl::StrAppendFormat(svg, "<text x=\"%.1f\" y=\"%d\">%s</text></g>\n",
                        kNameWidth + end + 5, y + kRowHeight - 4,
                        absl::StrJoin(numbers, " / "));
}

std::string Draw(absl::Span<const Row> rows, absl::string_view title) {
  const int height =
      kHeadHeight + kRowHeight * static_cast<int>(rows.size()) + 4;
  const int width = kNameWidth + kBarWidth + kNumberWidth;
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
      "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
      "<text x=\"%d\" y=\"16\" font-size=\"13\">%s</text>\n",
      width, height, width, height, kNameWidth, std::string(title));
  DrawScale(height, &svg);
  int y = kHeadHeight;
  for (const Row& row : rows) {
    DrawRow(row, y, &svg);
    y += kRowHeight;
  }
  absl::StrAppend(&svg, "</svg>\n");
  return svg;
}

}  // namespace

std::string EscapedForXml(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&apos;";
        break;
      default:
        // Bytes above ASCII are not known to be UTF-8 here.
        out += c < ' ' || c > '~' ? '?' : c;
    }
  }
  return out;
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
