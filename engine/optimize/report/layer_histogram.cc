#include "engine/optimize/report/layer_histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "base/xml_writer.h"
#include "engine/optimize/layers/layers.h"
#include "engine/optimize/report/layer_chart.h"
#include "engine/runtime/session/session.h"
#include "engine/transforms/quantizing/value_histogram.h"

namespace optfarm::optimize {
namespace {

using graph::Graph;
using runtime::Tensor;
using transforms::ValueHistogram;

// Bins of a report's histogram.
constexpr int kBins = 128;
// UNITS: pixels.
constexpr int kWidth = 960;
constexpr int kLeft = 20;
constexpr int kPlotWidth = 920;
constexpr int kPlotHeight = 140;
constexpr int kRowHeight = 200;
constexpr int kHeadHeight = 30;

struct Pair {
  ValueHistogram original;
  ValueHistogram result;
};

// The layers of both graphs by the names asked for; one with an empty `result`
// where only the original has the tensor.
absl::StatusOr<std::vector<Layer>> FindNamed(
    const Graph& original, const Graph& result,
    absl::Span<const transforms::RenamedNode> name_map,
    absl::Span<const std::string> names,
    absl::Span<const graph::TensorName> inputs) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Layer> common,
                           FindLayers(original, result, name_map, inputs,
                                      std::numeric_limits<size_t>::max()));
  std::map<std::string, const Layer*> by_name;
  for (const Layer& layer : common) by_name[layer.name] = &layer;
  std::vector<std::string> known;
  for (const graph::NodeId id : original.Ids()) {
    known.push_back(original.node(id).name());
  }
  std::vector<Layer> found;
  for (const std::string& name : names) {
    const graph::NodeId id = original.Find(name);
    if (id == graph::kNoNode) {
      return absl::NotFoundError(
          absl::StrCat("verification.histograms: the model has no node '", name,
                       "'", NearestNamesHint(name, known)));
    }
    const auto both = by_name.find(name);
    found.push_back(both != by_name.end()
                        ? *both->second
                        : Layer{name, original.node(id).op(), {}});
  }
  return found;
}

// A report's bins of both, which share low end and width.
v1::LayerHistogram ToReport(const Layer& layer, const Pair& pair) {
  v1::LayerHistogram out;
  out.set_name(layer.name);
  out.set_op(layer.op);
  const double low = std::min(pair.original.min(), pair.result.min());
  const double high = std::max(pair.original.max(), pair.result.max());
  const double width = high > low ? (high - low) / kBins : 1.0 / kBins;
  out.set_low(low);
  out.set_width(width);
  const auto fill = [&](const ValueHistogram& from, auto* to) {
    if (from.total() == 0) return;
    to->Resize(kBins, 0);
    const auto add = [&](double value, int64_t count) {
      const auto bin = static_cast<int64_t>(std::floor((value - low) / width));
      const int at = static_cast<int>(std::clamp<int64_t>(bin, 0, kBins - 1));
      to->Set(at, to->Get(at) + count);
    };
    add(0, from.zeros());
    for (int i = -ValueHistogram::kBins; i < ValueHistogram::kBins; ++i) {
      if (from.count(i) > 0) add((i + 0.5) * from.width(), from.count(i));
    }
  };
  fill(pair.original, out.mutable_original());
  fill(pair.result, out.mutable_result());
  return out;
}

// The height of a count: logarithmic, so that tails can be seen.
double Height(int64_t count, int64_t most) {
  return count <= 0 ? 0
                    : kPlotHeight * std::log1p(static_cast<double>(count)) /
                          std::log1p(static_cast<double>(most));
}

void DrawBins(const google::protobuf::RepeatedField<int64_t>& counts,
              int64_t most, double bottom, absl::string_view fill,
              absl::string_view stroke, XmlWriter& svg) {
  if (counts.empty()) return;
  const double step = static_cast<double>(kPlotWidth) / counts.size();
  std::string path = absl::StrFormat("M%d %.1f", kLeft, bottom);
  for (int i = 0; i < counts.size(); ++i) {
    const double y = bottom - Height(counts[i], most);
    absl::StrAppendFormat(&path, "L%.1f %.1fL%.1f %.1f", kLeft + i * step, y,
                          kLeft + (i + 1) * step, y);
  }
  absl::StrAppendFormat(&path, "L%d %.1f", kLeft + kPlotWidth, bottom);
  svg.Begin("path").Attribute("d", path).Attribute("fill", fill);
  if (!stroke.empty()) svg.Attribute("stroke", stroke);
  svg.End();
}

void DrawHistogram(const v1::LayerHistogram& layer, int top, XmlWriter& svg) {
  int64_t most = 1;
  for (const auto* counts : {&layer.original(), &layer.result()}) {
    for (const int64_t count : *counts) most = std::max(most, count);
  }
  const double bottom = top + 24 + kPlotHeight;
  svg.Begin("text")
      .Attribute("x", kLeft)
      .Attribute("y", top + 14)
      .Text(absl::StrCat(layer.name(), " (", layer.op(), ")"))
      .End();
  DrawBins(layer.original(), most, bottom, "#aed6f1", "", svg);
  DrawBins(layer.result(), most, bottom, "none", "#c0392b", svg);
  const double high = layer.low() + layer.width() * kBins;
  svg.Begin("text")
      .Attribute("x", kLeft)
      .Attribute("y", bottom + 14, 1)
      .Text(absl::StrFormat("%.4g", layer.low()))
      .End();
  svg.Begin("text")
      .Attribute("x", kLeft + kPlotWidth)
      .Attribute("y", bottom + 14, 1)
      .Attribute("text-anchor", "end")
      .Text(absl::StrFormat("%.4g", high))
      .End();
}

}  // namespace

absl::StatusOr<std::vector<v1::LayerHistogram>> MeasureHistograms(
    const Graph& original, const Graph& result,
    absl::Span<const transforms::RenamedNode> name_map,
    absl::Span<const std::string> names,
    absl::Span<const graph::TensorName> inputs,
    absl::Span<const int64_t> samples, int threads, SampleReader* reader) {
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<Layer> layers,
      FindNamed(original, result, name_map, names, inputs));
  std::vector<graph::TensorName> wanted, have;
  for (const Layer& layer : layers) {
    wanted.push_back({layer.name, 0});
    have.insert(have.end(), layer.result.begin(), layer.result.end());
  }
  runtime::SessionOptions options;
  options.threads = threads;
  options.print = [](absl::string_view) {};
  OPTFARM_ASSIGN_OR_RETURN(
      const auto before,
      runtime::Session::Create(original, inputs, wanted, options));
  std::unique_ptr<runtime::Session> after;
  if (!have.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(
        after, runtime::Session::Create(result, inputs, have, options));
  }
  std::vector<Pair> pairs(layers.size());
  for (const int64_t index : samples) {
    const auto sample = reader->Read(index);
    if (!sample.has_value()) continue;
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> a, before->Run(*sample));
    std::vector<Tensor> b;
    if (after != nullptr) {
      OPTFARM_ASSIGN_OR_RETURN(b, after->Run(*sample));
    }
    size_t at = 0;
    for (size_t i = 0; i < layers.size(); ++i) {
      if (a[i].dtype() != tensorflow::DT_FLOAT) {
        return absl::InvalidArgumentError(
            absl::StrCat("verification.histograms: node '", layers[i].name,
                         "' does not make float values"));
      }
      pairs[i].original.Add(a[i].flat<float>());
      if (layers[i].result.empty()) continue;
      const auto value = ValueOf(layers[i], b, at);
      at += layers[i].result.size();
      if (value.ok()) pairs[i].result.Add(value->flat<float>());
    }
  }
  std::vector<v1::LayerHistogram> histograms;
  for (size_t i = 0; i < layers.size(); ++i) {
    histograms.push_back(ToReport(layers[i], pairs[i]));
  }
  return histograms;
}

std::string DrawHistograms(absl::Span<const v1::LayerHistogram> histograms) {
  const int height =
      kHeadHeight + kRowHeight * static_cast<int>(histograms.size());
  std::string document;
  XmlWriter svg(document);
  BeginChart(kWidth, height, svg);
  svg.Begin("text")
      .Attribute("x", kLeft)
      .Attribute("y", 18)
      .Attribute("font-size", 13)
      .Text(
          "Values before (filled) and after (line), counts on a logarithmic "
          "scale")
      .End();
  int top = kHeadHeight;
  for (const v1::LayerHistogram& layer : histograms) {
    DrawHistogram(layer, top, svg);
    top += kRowHeight;
  }
  svg.End();
  return document;
}

}  // namespace optfarm::optimize
