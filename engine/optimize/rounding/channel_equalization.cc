#include "engine/optimize/rounding/channel_equalization.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/optimize/layers/layers.h"
#include "engine/optimize/samples/sample_runs.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/session/session.h"

namespace optfarm::optimize {
namespace {

using runtime::Tensor;

// Room for values that the samples did not have.
constexpr float kRoom = 1.1f;

// The lowest and the highest quantized value of a channel.
struct Extent {
  uint8_t low = 255;
  uint8_t high = 0;
};

struct LayerExtent {
  std::vector<Extent> channels;
  // The zero point.
  int zero = 0;
};

void Widen(const Tensor& quantized, LayerExtent* layer) {
  if (quantized.dtype() != tensorflow::DT_QUINT8 || quantized.rank() < 1)
    return;
  const auto channels =
      static_cast<size_t>(quantized.dim(quantized.rank() - 1));
  layer->channels.resize(channels);
  const auto* const values = quantized.data<uint8_t>();
  const auto count = static_cast<size_t>(quantized.num_elements());
  for (size_t at = 0; at < count; at += channels) {
    for (size_t c = 0; c < channels; ++c) {
      Extent& extent = layer->channels[c];
      extent.low = std::min(extent.low, values[at + c]);
      extent.high = std::max(extent.high, values[at + c]);
    }
  }
}

// Formula 28.
float Factor(const Extent& extent, int zero) {
  const int above = std::max(extent.high - zero, 0);
  const int below = std::max(zero - extent.low, 0);
  float factor = transforms::kMostChannelFactor;
  if (above > 0) {
    factor = std::min(factor, static_cast<float>(255 - zero) /
                                  (kRoom * static_cast<float>(above + 1)));
  }
  if (below > 0) {
    factor = std::min(factor, static_cast<float>(zero) /
                                  (kRoom * static_cast<float>(below + 1)));
  }
  // A channel that is always zero may stay as it is.
  return above + below == 0 ? 1.0f : std::max(factor, 1.0f);
}

}  // namespace

absl::StatusOr<transforms::ChannelFactors> FindChannelFactors(
    const graph::Graph& graph, absl::Span<const graph::TensorName> inputs,
    absl::Span<const int64_t> samples, int threads, SampleReader* reader) {
  transforms::ChannelFactors factors;
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<bool> may_be_cut,
                           MayBeCutOff(graph));
  std::vector<std::string> names = transforms::ScalableLayers(graph);
  std::erase_if(names, [&](const std::string& name) {
    return may_be_cut[graph.Find(name)];
  });
  if (names.empty()) return factors;
  std::vector<graph::TensorName> fetches;
  for (const std::string& name : names) {
    for (int port = 0; port < 3; ++port) fetches.push_back({name, port});
  }
  runtime::SessionOptions options;
  options.threads = 1;
  options.print = [](absl::string_view) {};
  OPTFARM_ASSIGN_OR_RETURN(
      const std::unique_ptr<runtime::Session> session,
      runtime::Session::Create(graph, inputs, fetches, options));
  std::vector<LayerExtent> layers(names.size());
  const auto take = [&](size_t, const std::vector<Tensor>& values) {
    for (size_t i = 0; i < names.size(); ++i) {
      const runtime::Range range = {values[3 * i + 1].flat<float>()[0],
                                    values[3 * i + 2].flat<float>()[0]};
      layers[i].zero = runtime::Quantize<uint8_t>(0.0f, range);
      Widen(values[3 * i], &layers[i]);
    }
    return absl::OkStatus();
  };
  OPTFARM_RETURN_IF_ERROR(
      Annotate(RunSamples(*session, samples, threads, reader, take),
               "While observing channels"));
  OPTFARM_RETURN_IF_ERROR(reader->CheckBad());
  for (size_t i = 0; i < names.size(); ++i) {
    if (layers[i].channels.empty()) continue;
    std::vector<float>& of_layer = factors[names[i]];
    for (const Extent& extent : layers[i].channels) {
      of_layer.push_back(Factor(extent, layers[i].zero));
    }
  }
  return factors;
}

}  // namespace optfarm::optimize
