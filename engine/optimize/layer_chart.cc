#include "engine/optimize/layer_chart.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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

// XML's five characters as entities; control characters, which XML does not
// have, as question marks.
std::string Escaped(absl::string_view text) {
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

void DrawLayer(const v1::TensorComparison& layer, int y, std::string* svg) {
  std::string name = layer.name();
  if (name.size() > kNameLength) {
    name = absl::StrCat("...", name.substr(name.size() - kNameLength + 3));
  }
  const double snr = layer.snr_db();
  absl::StrAppendFormat(
      svg,
      "<g><title>%s (%s)</title>\n"
      "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n"
      "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n"
      "<text x=\"%.1f\" y=\"%d\">%s</text></g>\n",
      Escaped(layer.name()), Escaped(layer.op()), kNameWidth - 6,
      y + kRowHeight - 4, Escaped(name), kNameWidth, y + 2,
      std::max(1.0, Position(snr)), kRowHeight - 4, std::string(Color(snr)),
      kNameWidth + Position(snr) + 5, y + kRowHeight - 4,
      std::isinf(snr) && snr > 0 ? "equal" : absl::StrFormat("%.1f", snr));
}

}  // namespace

std::string DrawLayers(absl::Span<const v1::TensorComparison> layers) {
  std::vector<const v1::TensorComparison*> compared;
  for (const v1::TensorComparison& layer : layers) {
    if (layer.samples() > 0) compared.push_back(&layer);
  }
  const int height =
      kHeadHeight + kRowHeight * static_cast<int>(compared.size()) + 4;
  const int width = kNameWidth + kBarWidth + kNumberWidth;
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
      "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
      "<text x=\"%d\" y=\"16\" font-size=\"13\">Signal to noise of each layer, "
      "dB, in the order of computation</text>\n",
      width, height, width, height, kNameWidth);
  DrawScale(height, &svg);
  int y = kHeadHeight;
  for (const v1::TensorComparison* layer : compared) {
    DrawLayer(*layer, y, &svg);
    y += kRowHeight;
  }
  absl::StrAppend(&svg, "</svg>\n");
  return svg;
}

}  // namespace optfarm::optimize
