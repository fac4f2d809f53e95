#include "engine/optimize/value_observation.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/optimize/sample_runs.h"
#include "engine/runtime/quantization.h"
#include "engine/runtime/session.h"
#include "engine/runtime/tensor.h"
#include "engine/transforms/freeze_quantize_ranges.h"

namespace optfarm::optimize {
namespace {

using graph::TensorName;
using runtime::Session;
using runtime::Tensor;
using transforms::ValueHistogram;
using Histograms = std::vector<ValueHistogram>;

// UNITS: bytes of the tensors that are held at a time.
constexpr int64_t kMostHeld = int64_t{1} << 30;
// Values of a tensor that are counted for each sample, twice as many at most.
constexpr int64_t kMostCounted = 4096;

// Histograms of all sites, one set for each sample that is running: threads
// need not wait for one another.
class HistogramSets {
 public:
  explicit HistogramSets(size_t sites) : sites_(sites) {}

  Histograms Take() {
    absl::MutexLock lock(&mutex_);
    if (free_.empty()) return Histograms(sites_);
    Histograms set = std::move(free_.back());
    free_.pop_back();
    return set;
  }
  void Return(Histograms set) {
    absl::MutexLock lock(&mutex_);
    free_.push_back(std::move(set));
  }
  // All sets together. REQUIRES: none is taken.
  Histograms Merged() {
    absl::MutexLock lock(&mutex_);
    Histograms all(sites_);
    for (const Histograms& set : free_) {
      for (size_t i = 0; i < sites_; ++i) all[i].Merge(set[i]);
    }
    return all;
  }

 private:
  const size_t sites_;
  absl::Mutex mutex_;
  std::vector<Histograms> free_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<Session>> MakeSession(
    const graph::Graph& graph, absl::Span<const RangeSite> sites,
    absl::Span<const TensorName> inputs) {
  std::vector<TensorName> fetches;
  for (const RangeSite& site : sites) {
    fetches.insert(fetches.end(), {site.value, site.min, site.max});
  }
  runtime::SessionOptions options;
  // One thread: samples run at once.
  options.threads = 1;
  options.print = [](absl::string_view) {};
  return Session::Create(graph, inputs, fetches, options);
}

// Of a large tensor every so-manieth value is counted, besides the smallest and
// the largest: a distribution does not need all of them. The distance has no
// divisor in common with the last axis, so that all channels have their turn.
int64_t StrideFor(const Tensor& tensor) {
  const int64_t channels =
      tensor.rank() > 0 ? tensor.dim(tensor.rank() - 1) : 1;
  int64_t stride = std::max<int64_t>(1, tensor.num_elements() / kMostCounted);
  while (stride > 1 && std::gcd(stride, channels) != 1) --stride;
  return stride;
}

void CountFloats(const Tensor& tensor, ValueHistogram* histogram) {
  const absl::Span<const float> values = tensor.flat<float>();
  const int64_t stride = StrideFor(tensor);
  if (stride == 1) {
    histogram->Add(values);
    return;
  }
  std::vector<float> counted;
  for (size_t i = 0; i < values.size(); i += stride) {
    counted.push_back(values[i]);
  }
  float low = values[0], high = values[0];
  for (const float v : values) {
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  counted.insert(counted.end(), {low, high});
  histogram->Add(counted);
}

// The codes as numbers. There is one range for all or one for each element of
// the last axis.
absl::Status CountCodes(const Tensor& codes, absl::Span<const float> min,
                        absl::Span<const float> max,
                        ValueHistogram* histogram) {
  const size_t channels = min.size();
  const int64_t count = codes.num_elements();
  if (channels == 0 || max.size() != channels ||
      (channels > 1 &&
       (codes.rank() == 0 ||
        codes.dim(codes.rank() - 1) != static_cast<int64_t>(channels)))) {
    return absl::InvalidArgumentError("its ranges do not fit its codes");
  }
  if (count == 0) return absl::OkStatus();
  std::vector<runtime::Dequantizer<int32_t>> decode;
  for (size_t c = 0; c < channels; ++c) {
    decode.emplace_back(runtime::Range{min[c], max[c]});
  }
  const auto* const from = static_cast<const int32_t*>(codes.raw());
  std::vector<float> counted;
  const int64_t stride = StrideFor(codes);
  for (int64_t i = 0; i < count; i += stride) {
    counted.push_back(decode[i % channels](from[i]));
  }
  std::vector<int32_t> low(from, from + channels), high = low;
  for (int64_t at = 0; at < count; at += static_cast<int64_t>(channels)) {
    for (size_t c = 0; c < channels; ++c) {
      low[c] = std::min(low[c], from[at + c]);
      high[c] = std::max(high[c], from[at + c]);
    }
  }
  float least = decode[0](low[0]), most = decode[0](high[0]);
  for (size_t c = 1; c < channels; ++c) {
    least = std::min(least, decode[c](low[c]));
    most = std::max(most, decode[c](high[c]));
  }
  if (stride > 1) counted.insert(counted.end(), {least, most});
  histogram->Add(counted);
  return absl::OkStatus();
}

absl::Status Count(const RangeSite& site, const Tensor* fetched,
                   ValueHistogram* histogram) {
  const Tensor& value = fetched[0];
  const std::string doing = absl::StrCat("what '", site.node, "' reads");
  if (site.is_quantize) {
    if (value.dtype() != tensorflow::DT_FLOAT) {
      return absl::InvalidArgumentError(absl::StrCat(doing, " is not float"));
    }
    CountFloats(value, histogram);
    return absl::OkStatus();
  }
  if (value.dtype() != tensorflow::DT_QINT32 ||
      fetched[1].dtype() != tensorflow::DT_FLOAT ||
      fetched[2].dtype() != tensorflow::DT_FLOAT) {
    return absl::InvalidArgumentError(
        absl::StrCat(doing, " is not 32-bit codes with a range"));
  }
  return Annotate(CountCodes(value, fetched[1].flat<float>(),
                             fetched[2].flat<float>(), histogram),
                  doing);
}

// How many sites from `first` on fit into `most` bytes; at least one.
size_t SitesThatFit(absl::Span<const int64_t> bytes, size_t first,
                    int64_t most) {
  size_t last = first;
  for (int64_t sum = 0; last < bytes.size(); ++last) {
    sum += bytes[last];
    if (sum > most && last > first) break;
  }
  return last - first;
}

// UNITS: bytes of each site's tensor for the first sample that can be used;
// nothing when none can be.
absl::StatusOr<std::vector<int64_t>> SizesOf(
    const graph::Graph& graph, absl::Span<const RangeSite> sites,
    absl::Span<const TensorName> inputs, absl::Span<const int64_t> samples,
    SampleReader* reader) {
  std::vector<int64_t> bytes(sites.size(), 0);
  for (const int64_t index : samples) {
    const auto sample = reader->Read(index);
    if (!sample.has_value()) continue;
    OPTFARM_ASSIGN_OR_RETURN(const auto session,
                             MakeSession(graph, sites, inputs));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                             session->Run(*sample));
    for (size_t i = 0; i < sites.size(); ++i) {
      const Tensor& value = values[3 * i];
      bytes[i] = value.num_elements() *
                 static_cast<int64_t>(runtime::ElementSize(value.dtype()));
    }
    break;
  }
  return bytes;
}

// One pass over the samples. Returns the number that could be used.
absl::StatusOr<int64_t> ObserveSome(const graph::Graph& graph,
                                    absl::Span<const RangeSite> sites,
                                    absl::Span<const TensorName> inputs,
                                    absl::Span<const int64_t> samples,
                                    int threads, SampleReader* reader,
                                    ValueObservation* observation) {
  OPTFARM_ASSIGN_OR_RETURN(const auto session,
                           MakeSession(graph, sites, inputs));
  HistogramSets sets(sites.size());
  const auto run = [&](size_t, const std::vector<Tensor>& sample)
      -> absl::StatusOr<std::vector<Tensor>> {
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                             session->Run(sample));
    Histograms set = sets.Take();
    for (size_t i = 0; i < sites.size(); ++i) {
      OPTFARM_RETURN_IF_ERROR(Count(sites[i], &values[3 * i], &set[i]));
    }
    sets.Return(std::move(set));
    return std::vector<Tensor>();
  };
  int64_t used = 0;
  const auto take = [&](size_t, const std::vector<Tensor>&) {
    ++used;
    return absl::OkStatus();
  };
  OPTFARM_RETURN_IF_ERROR(RunSamples(samples, threads, reader, run, take));
  Histograms merged = sets.Merged();
  for (size_t i = 0; i < sites.size(); ++i) {
    observation->histograms[sites[i].node] = std::move(merged[i]);
  }
  return used;
}

}  // namespace

bool IsRangeOp(absl::string_view op) {
  return op == "RequantizationRange" || op == "RequantizationRangePerChannel";
}

std::vector<RangeSite> FindRangeSites(const graph::Graph& graph,
                                      bool with_quantizes) {
  const auto name_of = [&](graph::Endpoint tensor) {
    return TensorName{graph.node(tensor.node).name(), tensor.port};
  };
  std::vector<RangeSite> sites;
  const auto add = [&](graph::NodeId id, bool is_quantize) {
    const graph::Node& node = graph.node(id);
    if (node.inputs().size() != 3) return;
    sites.push_back({node.name(), is_quantize, name_of(node.inputs()[0]),
                     name_of(node.inputs()[1]), name_of(node.inputs()[2]), 0});
  };
  for (const graph::NodeId id : graph.Ids()) {
    const graph::Node& node = graph.node(id);
    if (!IsRangeOp(node.op())) continue;
    const size_t before = sites.size();
    add(id, false);
    if (sites.size() > before) {
      sites.back().clip =
          graph::GetFloatOr(node.def(), "clip_value_max", 0).value_or(0.0f);
    }
  }
  if (with_quantizes) {
    for (const graph::NodeId id : transforms::QuantizesWithRangeOfRun(graph)) {
      add(id, true);
    }
  }
  return sites;
}

absl::StatusOr<ValueObservation> ObserveValues(
    const graph::Graph& graph, absl::Span<const RangeSite> sites,
    absl::Span<const TensorName> inputs, absl::Span<const int64_t> samples,
    int threads, SampleReader* reader) {
  constexpr char kDoing[] = "While observing values";
  ValueObservation observation;
  const auto sizes = SizesOf(graph, sites, inputs, samples, reader);
  if (!sizes.ok()) return Annotate(sizes.status(), kDoing);
  const int64_t most = kMostHeld / std::max(1, threads);
  for (size_t first = 0; first < sites.size();) {
    const size_t count = SitesThatFit(*sizes, first, most);
    const auto used = ObserveSome(graph, sites.subspan(first, count), inputs,
                                  samples, threads, reader, &observation);
    if (!used.ok()) return Annotate(used.status(), kDoing);
    observation.samples = *used;
    first += count;
  }
  OPTFARM_RETURN_IF_ERROR(reader->CheckBad());
  return observation;
}

}  // namespace optfarm::optimize
