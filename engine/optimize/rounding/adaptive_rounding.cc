#include "engine/optimize/rounding/adaptive_rounding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "engine/optimize/rounding/input_moments.h"
#include "engine/optimize/rounding/nearest_plane.h"
#include "engine/optimize/rounding/rounded_layers.h"
#include "engine/optimize/samples/sample_runs.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/session/session.h"

namespace optfarm::optimize {
namespace {

using runtime::Tensor;

// Columns whose errors make up for each other at most.
constexpr size_t kMostTogether = 1024;
// UNITS: bytes of sums held at once.
constexpr int64_t kMostBytes = int64_t{256} << 20;
// Multiplications for one layer and sample.
constexpr int64_t kMostProducts = int64_t{1} << 26;
// Of the mean of the variances, added to each.
constexpr double kLeastDamping = 0.01;
constexpr double kMostQuantized = 127;

// The sums of one layer: on every second sample, and on the others.
struct LayerMoments {
  absl::Mutex mutex;
  std::array<InputMoments, 2> halves;
  std::optional<runtime::Range> range;
  bool is_usable = true;
};

size_t BlockOf(const RoundedLayer& layer, size_t samples) {
  size_t most = kMostTogether;
  // A matrix sees one row a sample: too little for many columns.
  if (layer.window.kind == WindowShape::Kind::kMatrix) {
    most = std::max<size_t>(1, std::min(most, samples));
  }
  const size_t together = layer.columns_together();
  const size_t blocks = (together + most - 1) / most;
  return (together + blocks - 1) / blocks;
}

// Windows taken of a sample: as many as can be paid for, but so many that all
// samples together know the columns.
int64_t RowsOf(const RoundedLayer& layer, size_t block, size_t samples) {
  const auto cost = static_cast<int64_t>(layer.window.columns() * block);
  const auto least = static_cast<int64_t>((4 * block + samples - 1) / samples);
  return std::clamp(std::max(kMostProducts / std::max<int64_t>(cost, 1), least),
                    int64_t{1}, kMostRows);
}

// Few windows say little about many columns, and what they say is soon fitted.
double DampingOf(const QuadraticForm& form, int64_t rows) {
  return std::max(kLeastDamping,
                  static_cast<double>(form.size) /
                      static_cast<double>(std::max<int64_t>(rows, 1)));
}

class RoundingFinder {
 public:
  RoundingFinder(const graph::Graph& quantized, const SampleRun& run)
      : graph_(quantized), run_(run) {}

  absl::Status Find(absl::Span<const RoundedLayer> layers,
                    transforms::ConstantShifts* shifts) {
    std::vector<std::unique_ptr<LayerMoments>> moments;
    for (const RoundedLayer& layer : layers) {
      const size_t block = BlockOf(layer, run_.samples.size());
      auto of_layer = std::make_unique<LayerMoments>();
      for (InputMoments& half : of_layer->halves) {
        half = MakeMoments(layer.window.columns(), block);
      }
      moments.push_back(std::move(of_layer));
    }
    OPTFARM_RETURN_IF_ERROR(Observe(layers, moments));
    std::vector<Rounding> found(layers.size());
    runtime::ThreadPool pool(std::max(1, run_.threads));
    pool.ParallelFor(static_cast<int64_t>(layers.size()), 1,
                     [&](int64_t first, int64_t last) {
                       for (int64_t i = first; i < last; ++i) {
                         found[i] = RoundLayer(layers[i], moments[i].get());
                       }
                     });
    for (size_t i = 0; i < layers.size(); ++i) {
      if (found[i].values.empty()) continue;
      shifts->emplace(layers[i].values, std::move(found[i].values));
      shifts->emplace(layers[i].bias, std::move(found[i].bias));
    }
    return absl::OkStatus();
  }

 private:
  // What is added to a layer's quantized values and bias; empty for nothing.
  struct Rounding {
    std::vector<float> values;
    std::vector<float> bias;
  };

  absl::Status Observe(
      absl::Span<const RoundedLayer> layers,
      absl::Span<const std::unique_ptr<LayerMoments>> moments) {
    std::vector<graph::TensorName> fetches;
    for (const RoundedLayer& layer : layers) {
      fetches.insert(fetches.end(), {layer.input, layer.min, layer.max});
    }
    runtime::SessionOptions options;
    options.threads = 1;
    options.print = [](absl::string_view) {};
    OPTFARM_ASSIGN_OR_RETURN(
        const std::unique_ptr<runtime::Session> session,
        runtime::Session::Create(graph_, run_.inputs, fetches, options));
    using Values = std::vector<Tensor>;
    // The ends of ranges are handed on.
    const auto run = [&](size_t place,
                         const Values& inputs) -> absl::StatusOr<Values> {
      OPTFARM_ASSIGN_OR_RETURN(Values values, session->Run(inputs));
      for (size_t i = 0; i < layers.size(); ++i) {
        OPTFARM_RETURN_IF_ERROR(
            AddSample(layers[i], &values[3 * i], place, moments[i].get()));
        values[3 * i] = Tensor();
      }
      return values;
    };
    const auto take = [&](size_t, const Values& values) {
      for (size_t i = 0; i < layers.size(); ++i) {
        const runtime::Range range = {values[3 * i + 1].flat<float>()[0],
                                      values[3 * i + 2].flat<float>()[0]};
        LayerMoments& of_layer = *moments[i];
        if (!of_layer.range.has_value()) of_layer.range = range;
        of_layer.is_usable &= of_layer.range->min == range.min &&
                              of_layer.range->max == range.max;
      }
      return absl::OkStatus();
    };
    OPTFARM_RETURN_IF_ERROR(
        Annotate(RunSamples(run_.samples, run_.threads, run_.reader, run, take),
                 "While observing what weights are multiplied with"));
    return run_.reader->CheckBad();
  }

  absl::Status AddSample(const RoundedLayer& layer, const Tensor* values,
                         size_t place, LayerMoments* moments) const {
    if (values[1].num_elements() != 1 || values[2].num_elements() != 1 ||
        values[1].dtype() != tensorflow::DT_FLOAT ||
        values[2].dtype() != tensorflow::DT_FLOAT) {
      return absl::InvalidArgumentError(
          "a layer's input has not one range for all of it");
    }
    const runtime::Range range = {values[1].flat<float>()[0],
                                  values[2].flat<float>()[0]};
    InputMoments& shared = moments->halves[place % 2];
    const size_t block = shared.block;
    InputMoments own = MakeMoments(layer.window.columns(), block);
    OPTFARM_RETURN_IF_ERROR(
        AddWindows(values[0], runtime::Quantize<uint8_t>(0.0f, range),
                   layer.window, RowsOf(layer, block, run_.samples.size()),
                   static_cast<int64_t>(place), &own));
    // Whole numbers: it does not matter who comes first.
    const absl::MutexLock lock(&moments->mutex);
    shared.Add(own);
    return absl::OkStatus();
  }

  // The targets of a block, a row for each column.
  static std::vector<double> Targets(const RoundedLayer& layer, size_t begin,
                                     size_t size) {
    std::vector<double> targets(size * layer.outputs);
    for (size_t i = 0; i < size; ++i) {
      for (size_t o = 0; o < layer.outputs; ++o) {
        targets[i * layer.outputs + o] =
            layer.targets[layer.PlaceOf(begin + i, o)];
      }
    }
    return targets;
  }

  static std::vector<double> Differences(absl::Span<const double> a,
                                         absl::Span<const double> b) {
    std::vector<double> differences(a.size());
    for (size_t i = 0; i < a.size(); ++i) differences[i] = a[i] - b[i];
    return differences;
  }

  // By channel: how much less the error on the second half is when quantized
  // values are chosen on the first one.
  static std::vector<double> Gains(const RoundedLayer& layer,
                                   const LayerMoments& moments) {
    std::vector<double> gains(layer.steps.size(), 0.0);
    const size_t block = moments.halves[0].block;
    for (size_t b = 0; b < moments.halves[0].products.size(); ++b) {
      const QuadraticForm form = moments.halves[0].Centered(b);
      const QuadraticForm test = moments.halves[1].Centered(b);
      const std::vector<double> targets = Targets(layer, b * block, form.size);
      std::vector<double> nearest = targets;
      for (double& value : nearest) value = std::round(value);
      const std::vector<double> before =
          ErrorsUnder(test, Differences(targets, nearest), layer.outputs);
      const std::vector<double> after = ErrorsUnder(
          test,
          Differences(targets, RoundToNearestPlanes(
                                   form, targets, layer.outputs,
                                   DampingOf(form, moments.halves[0].rows),
                                   kMostQuantized)),
          layer.outputs);
      for (size_t o = 0; o < layer.outputs; ++o) {
        gains[layer.ChannelOf(b * block, o)] += before[o] - after[o];
      }
    }
    return gains;
  }

  static Rounding RoundLayer(const RoundedLayer& layer, LayerMoments* moments) {
    Rounding rounding;
    if (!moments->is_usable || !moments->range.has_value() ||
        moments->halves[0].rows == 0 || moments->halves[1].rows == 0) {
      return rounding;
    }
    const std::vector<double> gains = Gains(layer, *moments);
    if (std::none_of(gains.begin(), gains.end(),
                     [](double gain) { return gain > 0; })) {
      return rounding;
    }
    InputMoments& all = moments->halves[0];
    all.Add(moments->halves[1]);
    rounding.values.resize(layer.nearest.size(), 0.0f);
    std::vector<double> bias(gains.size(), 0.0);
    for (size_t b = 0; b < all.products.size(); ++b) {
      const size_t begin = b * all.block;
      const QuadraticForm form = all.Centered(b);
      const std::vector<double> targets = Targets(layer, begin, form.size);
      const std::vector<double> values =
          RoundToNearestPlanes(form, targets, layer.outputs,
                               DampingOf(form, all.rows), kMostQuantized);
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t column = begin + i / layer.outputs;
        const size_t channel = layer.ChannelOf(column, i % layer.outputs);
        if (!(gains[channel] > 0)) continue;
        const size_t place = layer.PlaceOf(column, i % layer.outputs);
        rounding.values[place] =
            static_cast<float>(values[i] - layer.nearest[place]);
        bias[channel] += (targets[i] - values[i]) * all.sums[column];
      }
    }
    const double step =
        (double{moments->range->max} - moments->range->min) / 255.0;
    for (size_t c = 0; c < bias.size(); ++c) {
      rounding.bias.push_back(static_cast<float>(
          bias[c] * step * layer.steps[c] / static_cast<double>(all.rows)));
    }
    return rounding;
  }

  const graph::Graph& graph_;
  const SampleRun& run_;
};

}  // namespace

absl::StatusOr<transforms::ConstantShifts> FindRounding(
    const graph::Graph& floats, const graph::Graph& quantized,
    const SampleRun& run) {
  transforms::ConstantShifts shifts;
  const std::vector<RoundedLayer> layers = FindRoundedLayers(floats, quantized);
  RoundingFinder finder(quantized, run);
  // As many layers at once as there is memory for; each time costs a run of the
  // samples.
  for (size_t begin = 0; begin < layers.size();) {
    size_t end = begin;
    int64_t bytes = 0;
    while (end < layers.size()) {
      // Twice: the samples are parted.
      bytes += 2 * MomentBytes(layers[end].window.columns(),
                               BlockOf(layers[end], run.samples.size()));
      if (end > begin && bytes > kMostBytes) break;
      ++end;
    }
    OPTFARM_RETURN_IF_ERROR(finder.Find(
        absl::MakeConstSpan(layers).subspan(begin, end - begin), &shifts));
    begin = end;
  }
  return shifts;
}

}  // namespace optfarm::optimize
