#include "engine/optimize/layers/value_observation.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "engine/optimize/samples/sample_runs.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/session/session.h"

namespace optfarm::optimize {
namespace {

using graph::TensorName;
using runtime::Session;
using runtime::Tensor;
using transforms::ObservedRange;
using transforms::ValueHistogram;

// UNITS: bytes of the tensors that are held at a time.
constexpr int64_t kMostObserved = int64_t{1} << 29;
// Values of a tensor that are counted for all samples together, and for each of
// them; twice as many at most.
constexpr int64_t kMostCountedOfAll = int64_t{1} << 16;
constexpr int64_t kMostCounted = 4096;
constexpr int64_t kLeastCounted = 512;

// Values that are counted together: a histogram is larger than a core's fastest
// cache, was filled by another core the last time, and those of all sites take
// turns in it.
constexpr size_t kCountedTogether = size_t{1} << 15;

// Values of a tensor that are looked at together.
constexpr size_t kLookedAtTogether = 4096;

// A site's histogram, and values that are not counted yet. All threads share
// it, because memory that each of them takes for the first time costs more than
// the short waiting. THREADS: any.
class SiteValues {
 public:
  void Add(absl::Span<const float> values) {
    std::vector<float> full;
    {
      absl::MutexLock lock(&mutex_);
      waiting_.reserve(kCountedTogether + values.size());
      waiting_.insert(waiting_.end(), values.begin(), values.end());
      if (waiting_.size() < kCountedTogether) return;
      full.swap(waiting_);
      waiting_.swap(spare_);
    }
    // Others may add meanwhile.
    Count(&full);
    absl::MutexLock lock(&mutex_);
    spare_.swap(full);
  }

  // All that was added. Nothing is left here.
  ValueHistogram Take() {
    std::vector<float> rest;
    {
      absl::MutexLock lock(&mutex_);
      rest.swap(waiting_);
    }
    Count(&rest);
    absl::MutexLock lock(&counting_);
    return std::move(histogram_);
  }

 private:
  void Count(std::vector<float>* values) {
    absl::MutexLock lock(&counting_);
    histogram_.Add(*values);
    values->clear();
  }

  absl::Mutex mutex_;
  std::vector<float> waiting_ ABSL_GUARDED_BY(mutex_);
  // Empty: memory that the next values may wait in.
  std::vector<float> spare_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex counting_;
  ValueHistogram histogram_ ABSL_GUARDED_BY(counting_);
};

// Tensors that are fetched for a site: a float one, or quantized values and
// their range.
size_t FetchesOf(const RangeSite& site) { return site.is_float ? 1 : 3; }

absl::StatusOr<std::unique_ptr<Session>> MakeSession(
    const graph::Graph& graph, absl::Span<const RangeSite> sites,
    absl::Span<const TensorName> inputs) {
  std::vector<TensorName> fetches;
  for (const RangeSite& site : sites) {
    fetches.push_back(site.value);
    if (!site.is_float) fetches.insert(fetches.end(), {site.min, site.max});
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
int64_t StrideFor(const Tensor& tensor, int64_t most) {
  const int64_t channels =
      tensor.rank() > 0 ? tensor.dim(tensor.rank() - 1) : 1;
  int64_t stride =
      std::max<int64_t>(1, (tensor.num_elements() + most - 1) / most);
  while (stride > 1 && std::gcd(stride, channels) != 1) --stride;
  return stride;
}

void CountFloats(const Tensor& tensor, int64_t most,
                 std::vector<float>* counted) {
  const absl::Span<const float> values = tensor.flat<float>();
  const auto stride = static_cast<size_t>(StrideFor(tensor, most));
  counted->resize((values.size() + stride - 1) / stride);
  float* to = counted->data();
  ObservedRange ends;
  size_t next = 0;
  // A part at a time, which is still in a core's cache for the second look.
  for (size_t at = 0; at < values.size(); at += kLookedAtTogether) {
    const auto part = values.subspan(at, kLookedAtTogether);
    if (stride > 1) {
      const ObservedRange of_part = transforms::ExtremesOf(part);
      // Both are NaN, or none; what is NaN stays so.
      const bool is_bad = std::isnan(of_part.min);
      if (is_bad || of_part.min < ends.min) ends.min = of_part.min;
      if (is_bad || of_part.max > ends.max) ends.max = of_part.max;
    }
    for (; next < at + part.size(); next += stride) *to++ = values[next];
  }
  // Zero, which they may be, is counted apart and does no harm.
  if (stride > 1) counted->insert(counted->end(), {ends.min, ends.max});
}

// The quantized values as numbers. There is one range for all or one for each
// element of the last axis.
absl::Status CountQuantized(const Tensor& values, absl::Span<const float> min,
                            absl::Span<const float> max, int64_t most_counted,
                            std::vector<float>* counted) {
  const size_t channels = min.size();
  const int64_t count = values.num_elements();
  if (channels == 0 || max.size() != channels ||
      (channels > 1 &&
       (values.rank() == 0 ||
        values.dim(values.rank() - 1) != static_cast<int64_t>(channels)))) {
    return absl::InvalidArgumentError(
        "its ranges do not fit its quantized values");
  }
  if (count == 0) return absl::OkStatus();
  std::vector<runtime::Dequantizer<int32_t>> decode;
  for (size_t c = 0; c < channels; ++c) {
    decode.emplace_back(runtime::Range{min[c], max[c]});
  }
  const auto* const from = static_cast<const int32_t*>(values.raw());
  const int64_t stride = StrideFor(values, most_counted);
  for (int64_t i = 0; i < count; i += stride) {
    counted->push_back(decode[i % channels](from[i]));
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
  if (stride > 1) counted->insert(counted->end(), {least, most});
  return absl::OkStatus();
}

absl::Status CheckFloat(const RangeSite& site, const Tensor& value) {
  if (value.dtype() == tensorflow::DT_FLOAT) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("what '", site.node, "' reads is not float"));
}

absl::Status Count(const RangeSite& site, const Tensor* fetched, int64_t most,
                   std::vector<float>* counted) {
  const Tensor& value = fetched[0];
  if (site.is_float) {
    OPTFARM_RETURN_IF_ERROR(CheckFloat(site, value));
    CountFloats(value, most, counted);
    return absl::OkStatus();
  }
  const std::string doing = absl::StrCat("what '", site.node, "' reads");
  if (value.dtype() != tensorflow::DT_QINT32 ||
      fetched[1].dtype() != tensorflow::DT_FLOAT ||
      fetched[2].dtype() != tensorflow::DT_FLOAT) {
    return absl::InvalidArgumentError(
        absl::StrCat(doing, " is not 32-bit quantized values with a range"));
  }
  return Annotate(CountQuantized(value, fetched[1].flat<float>(),
                                 fetched[2].flat<float>(), most, counted),
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

// Looks at what was fetched for `count` sites from `first` on in one run, on
// the thread that ran it.
using Look =
    absl::FunctionRef<absl::Status(size_t place, size_t first, size_t count,
                                   const std::vector<Tensor>& fetched)>;

// Looks at all sites for the first sample that can be used, which tells how
// much memory they take. `session` fetches all sites. Returns the sample's
// place, and sets `bytes` to those of each site's tensor; as many places as
// there are samples when none can be used.
absl::StatusOr<size_t> LookAtFirst(const Session& session,
                                   absl::Span<const RangeSite> sites,
                                   const SampleRun& run, Look look,
                                   std::vector<int64_t>* bytes) {
  size_t place = 0;
  for (; place < run.samples.size(); ++place) {
    const auto sample = run.reader->Read(run.samples[place]);
    if (!sample.has_value()) continue;
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                             session.Run(*sample));
    const Tensor* value = values.data();
    for (const RangeSite& site : sites) {
      bytes->push_back(
          value->num_elements() *
          static_cast<int64_t>(runtime::ElementSize(value->dtype())));
      value += FetchesOf(site);
    }
    OPTFARM_RETURN_IF_ERROR(look(place, 0, sites.size(), values));
    break;
  }
  return place;
}

// Fetches all sites of each sample, some at a time where memory asks for it.
// Returns which samples could be used.
absl::StatusOr<std::vector<size_t>> FetchSites(
    const graph::Graph& graph, absl::Span<const RangeSite> sites,
    const SampleRun& run, Look look) {
  OPTFARM_ASSIGN_OR_RETURN(auto session, MakeSession(graph, sites, run.inputs));
  std::vector<int64_t> sizes;
  OPTFARM_ASSIGN_OR_RETURN(const size_t known,
                           LookAtFirst(*session, sites, run, look, &sizes));
  if (known == run.samples.size()) {
    OPTFARM_RETURN_IF_ERROR(run.reader->CheckBad());
    return std::vector<size_t>();
  }
  const size_t begin = known + 1;
  const int64_t most = kMostObserved / std::max(1, run.threads);
  std::vector<size_t> used;
  for (size_t first = 0; first < sites.size();) {
    const size_t count = SitesThatFit(sizes, first, most);
    if (count < sites.size()) {
      OPTFARM_ASSIGN_OR_RETURN(
          session, MakeSession(graph, sites.subspan(first, count), run.inputs));
    }
    const auto run_one = [&](size_t place, const std::vector<Tensor>& sample)
        -> absl::StatusOr<std::vector<Tensor>> {
      OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> fetched,
                               session->Run(sample));
      OPTFARM_RETURN_IF_ERROR(look(begin + place, first, count, fetched));
      return std::vector<Tensor>();
    };
    used = {known};
    const auto take = [&](size_t place, const std::vector<Tensor>&) {
      used.push_back(begin + place);
      return absl::OkStatus();
    };
    OPTFARM_RETURN_IF_ERROR(RunSamples(run.samples.subspan(begin), run.threads,
                                       run.reader, run_one, take));
    first += count;
  }
  OPTFARM_RETURN_IF_ERROR(run.reader->CheckBad());
  return used;
}

constexpr char kDoing[] = "While observing values";

}  // namespace

absl::StatusOr<std::vector<std::vector<ObservedRange>>> ObserveExtremes(
    const graph::Graph& graph, absl::Span<const RangeSite> sites,
    const SampleRun& run) {
  std::vector<std::vector<ObservedRange>> ranges(run.samples.size());
  for (auto& of_sample : ranges) of_sample.resize(sites.size());
  const auto look = [&](size_t place, size_t first, size_t count,
                        const std::vector<Tensor>& fetched) {
    for (size_t i = 0; i < count; ++i) {
      OPTFARM_RETURN_IF_ERROR(CheckFloat(sites[first + i], fetched[i]));
      ranges[place][first + i] =
          transforms::ExtremesOf(fetched[i].flat<float>());
    }
    return absl::OkStatus();
  };
  const auto used = FetchSites(graph, sites, run, look);
  if (!used.ok()) return Annotate(used.status(), kDoing);
  std::vector<std::vector<ObservedRange>> of_used;
  for (const size_t place : *used) of_used.push_back(std::move(ranges[place]));
  return of_used;
}

absl::StatusOr<ValueObservation> ObserveValues(
    const graph::Graph& graph, absl::Span<const RangeSite> sites,
    const SampleRun& run) {
  std::vector<SiteValues> of_sites(sites.size());
  const int64_t most = std::clamp<int64_t>(
      kMostCountedOfAll / std::max<int64_t>(1, std::ssize(run.samples)),
      kLeastCounted, kMostCounted);
  const auto look = [&](size_t, size_t first, size_t count,
                        const std::vector<Tensor>& fetched) {
    std::vector<float> counted;
    const Tensor* value = fetched.data();
    for (size_t i = first; i < first + count; ++i) {
      counted.clear();
      OPTFARM_RETURN_IF_ERROR(Count(sites[i], value, most, &counted));
      of_sites[i].Add(counted);
      value += FetchesOf(sites[i]);
    }
    return absl::OkStatus();
  };
  const auto used = FetchSites(graph, sites, run, look);
  if (!used.ok()) return Annotate(used.status(), kDoing);
  ValueObservation observation;
  observation.samples = static_cast<int64_t>(used->size());
  std::vector<ValueHistogram> histograms(sites.size());
  runtime::ThreadPool pool(std::max(1, run.threads));
  // What still waits is counted.
  pool.ParallelFor(std::ssize(sites), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) histograms[i] = of_sites[i].Take();
  });
  for (size_t i = 0; i < sites.size(); ++i) {
    observation.histograms[sites[i].node] = std::move(histograms[i]);
  }
  return observation;
}

}  // namespace optfarm::optimize
