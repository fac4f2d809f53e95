#include "engine/optimize/rounding/channel_equalization.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
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
  absl::Mutex mutex;
  std::vector<Extent> channels ABSL_GUARDED_BY(mutex);
  // The zero point.
  int zero = 0;
};

// Sixteen at once, which the compiler does not find by itself.
typedef uint8_t Bytes __attribute__((vector_size(16)));
constexpr size_t kExtentLanes = sizeof(Bytes);

// The extents of kExtentLanes channels from `first` on, over all positions.
void FindExtents(absl::Span<const uint8_t> values, size_t channels,
                 size_t first, Extent* extents) {
  Bytes low, high;
  std::memcpy(&low, values.data() + first, sizeof(low));
  high = low;
  for (size_t at = first; at < values.size(); at += channels) {
    Bytes v;
    std::memcpy(&v, values.data() + at, sizeof(v));
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  for (size_t i = 0; i < kExtentLanes; ++i)
    extents[first + i] = {low[i], high[i]};
}

std::vector<Extent> ExtentsOf(absl::Span<const uint8_t> values,
                              size_t channels) {
  std::vector<Extent> extents(channels);
  if (values.empty()) return extents;
  size_t c = 0;
  for (; c + kExtentLanes <= channels; c += kExtentLanes) {
    FindExtents(values, channels, c, extents.data());
  }
  for (; c < channels; ++c) {
    for (size_t at = c; at < values.size(); at += channels) {
      extents[c].low = std::min(extents[c].low, values[at]);
      extents[c].high = std::max(extents[c].high, values[at]);
    }
  }
  return extents;
}

// THREADS: any; samples may come in any order.
void Widen(const Tensor& quantized, LayerExtent* layer) {
  if (quantized.dtype() != tensorflow::DT_QUINT8 || quantized.rank() < 1)
    return;
  const auto channels =
      static_cast<size_t>(quantized.dim(quantized.rank() - 1));
  const std::vector<Extent> extents = ExtentsOf(
      absl::MakeConstSpan(quantized.data<uint8_t>(),
                          static_cast<size_t>(quantized.num_elements())),
      channels);
  const absl::MutexLock lock(&layer->mutex);
  layer->channels.resize(channels);
  for (size_t c = 0; c < channels; ++c) {
    Extent& extent = layer->channels[c];
    extent.low = std::min(extent.low, extents[c].low);
    extent.high = std::max(extent.high, extents[c].high);
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
  using Values = std::vector<Tensor>;
  // Only the ends of ranges are held until their turn comes.
  const auto run = [&](size_t, const Values& sample) -> absl::StatusOr<Values> {
    OPTFARM_ASSIGN_OR_RETURN(Values values, session->Run(sample));
    for (size_t i = 0; i < names.size(); ++i) {
      Widen(values[3 * i], &layers[i]);
      values[3 * i] = Tensor();
    }
    return values;
  };
  const auto take = [&](size_t, const Values& values) {
    for (size_t i = 0; i < names.size(); ++i) {
      const runtime::Range range = {values[3 * i + 1].flat<float>()[0],
                                    values[3 * i + 2].flat<float>()[0]};
      layers[i].zero = runtime::Quantize<uint8_t>(0.0f, range);
    }
    return absl::OkStatus();
  };
  OPTFARM_RETURN_IF_ERROR(
      Annotate(RunSamples(samples, threads, reader, run, take),
               "While observing channels"));
  OPTFARM_RETURN_IF_ERROR(reader->CheckBad());
  for (size_t i = 0; i < names.size(); ++i) {
    const absl::MutexLock lock(&layers[i].mutex);
    if (layers[i].channels.empty()) continue;
    std::vector<float>& of_layer = factors[names[i]];
    for (const Extent& extent : layers[i].channels) {
      of_layer.push_back(Factor(extent, layers[i].zero));
    }
  }
  return factors;
}

}  // namespace optfarm::optimize
