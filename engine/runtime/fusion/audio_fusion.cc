// AudioSpectrogram and Mfcc.

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/audio/mel_bands.h"
#include "engine/runtime/reference/audio/spectrogram_attrs.h"
#include "engine/runtime/ukernels/audio/audio_functions.h"
#include "engine/runtime/ukernels/audio/fourier_tables.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"

namespace optfarm::runtime {
namespace {

// UNITS: complex values; tables of larger ones take more than they are worth.
constexpr int64_t kMostFourier = 1 << 16;
// UNITS: slices worth handing to another thread.
constexpr int64_t kGrain = 8;

// What SpectrogramSlices knows of an op.
class SpectrogramPlan {
 public:
  SpectrogramPlan(const SpectrogramAttrs& attrs,
                  const AudioFunctions& functions)
      : attrs_(attrs),
        window_((attrs.window + kWindowBlock - 1) / kWindowBlock *
                kWindowBlock),
        room_(FourierRoom(attrs.fft_size / 2, functions.lanes)),
        row_(FourierRow(functions.lanes)),
        lanes_(functions.lanes),
        factors_(window_),
        tables_(attrs.fft_size / 2, functions.lanes) {
    const std::vector<double> hann = HannWindow(attrs.window);
    for (int64_t i = 0; i < attrs.window; ++i) factors_[i] = 0.5 * hann[i];
  }

  const SpectrogramAttrs& attrs() const { return attrs_; }

  // Calls run(slices, first) for slices of `shape` from number `first` on until
  // all of [begin, end) were; kMostAudioLanes of them may be worked on at a
  // time when they are to become coefficients.
  template <typename Function>
  void Run(const float* samples, const Shape& shape, int64_t begin, int64_t end,
           int64_t together, const Function& run) const {
    const Scratch<double> scratch(4 * room_);
    const Scratch<float> rows(together * room_);
    SpectrogramSlices slices;
    slices.window = window_;
    slices.factors = factors_.data();
    tables_.PutInto(&slices);
    slices.is_squared = attrs_.is_squared;
    slices.last = row_ / 2;
    slices.rows = rows.data();
    slices.scratch = scratch.data();
    if (shape.dim(0) == 1 && window_ == attrs_.window) {
      slices.samples = samples + begin * attrs_.stride;
      slices.stride = attrs_.stride;
      slices.slices = end - begin;
      return run(slices, begin);
    }
    // Samples are put side by side and filled up.
    const Scratch<float> copy(kMostAudioLanes * window_);
    slices.samples = copy.data();
    slices.stride = window_;
    for (int64_t i = begin; i < end; i += slices.slices) {
      slices.slices = std::min<int64_t>(end - i, kMostAudioLanes);
      for (int64_t k = 0; k < slices.slices; ++k) {
        CopySlice(samples, shape, i + k, copy.data() + k * window_);
      }
      run(slices, i);
    }
  }

  // Leaves out what lies beyond bins [begin, end).
  void Limit(int64_t begin, int64_t end, SpectrogramSlices* slices) const {
    const int64_t size = attrs_.fft_size / 2;
    slices->with_upper = end > size / 2 + 1;
    if (slices->with_upper) return;
    const int64_t step = size / row_ * lanes_;
    slices->first = begin / step * lanes_;
    slices->last = std::min(row_ / 2, (end + step - 1) / step * lanes_);
  }

 private:
  void CopySlice(const float* samples, const Shape& shape, int64_t slice,
                 float* to) const {
    const int64_t channels = shape.dim(0);
    const float* from = samples +
                        slice % shape.dim(1) * attrs_.stride * channels +
                        slice / shape.dim(1);
    for (int64_t k = 0; k < attrs_.window; ++k) to[k] = from[k * channels];
    std::fill(to + attrs_.window, to + window_, 0.0f);
  }

  const SpectrogramAttrs attrs_;
  const int64_t window_;
  const int64_t room_;
  const int64_t row_;
  const int64_t lanes_;
  std::vector<double> factors_;
  const FourierTables tables_;
};

class FastSpectrogram final : public Kernel {
 public:
  FastSpectrogram(const SpectrogramAttrs& attrs,
                  const AudioFunctions& functions, StepChain chain)
      : plan_(attrs, functions),
        functions_(functions),
        chain_(std::move(chain)) {}

  absl::Status Compute(KernelContext* context) const override {
    const Tensor& input = context->input(0);
    const absl::StatusOr<Shape> shape = SpectrogramShape(plan_.attrs(), input);
    if (!shape.ok()) return chain_.Run(context);
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, input.dtype(), *shape));
    const float* samples = input.data<float>();
    float* to = out->data<float>();
    context->pool()->ParallelFor(
        shape->dim(0) * shape->dim(1), kGrain, [&](int64_t begin, int64_t end) {
          plan_.Run(samples, *shape, begin, end, 1,
                    [&](SpectrogramSlices slices, int64_t first) {
                      slices.out = to + first * shape->dim(2);
                      functions_.spectrogram(slices);
                    });
        });
    return absl::OkStatus();
  }

 private:
  const SpectrogramPlan plan_;
  const AudioFunctions& functions_;
  const StepChain chain_;
};

// What MelSlices knows of a spectrum's bins.
struct MelEdges {
  int64_t bins = 0;
  int64_t sample_rate = 0;
  std::vector<int64_t> edges;
  std::vector<double> weights;
};

absl::StatusOr<std::shared_ptr<const MelEdges>> MakeMelEdges(
    const MfccAttrs& attrs, int64_t bins, int64_t sample_rate) {
  OPTFARM_ASSIGN_OR_RETURN(
      const MelBands mel,
      MelBands::Create(attrs, bins, static_cast<double>(sample_rate)));
  auto made = std::make_shared<MelEdges>();
  made->bins = bins;
  made->sample_rate = sample_rate;
  made->weights = mel.weights();
  const int64_t end = std::max(mel.begin(), mel.end() + 1);
  int64_t at = mel.begin();
  for (int64_t band = -1; band < attrs.bands; ++band) {
    while (at < end && mel.owners()[at] < band) ++at;
    made->edges.push_back(at);
  }
  made->edges.push_back(end);
  return made;
}

// What MelSlices knows of an op.
class MelPlan {
 public:
  explicit MelPlan(const MfccAttrs& attrs)
      : attrs_(attrs), cosines_(MfccCosines(attrs)) {}

  const MfccAttrs& attrs() const { return attrs_; }

  // The bands are placed when a run first has such a spectrum: a model has one.
  absl::StatusOr<std::shared_ptr<const MelEdges>> EdgesOf(
      int64_t bins, const Tensor& sample_rate) const {
    OPTFARM_ASSIGN_OR_RETURN(const int64_t rate,
                             ReadInteger(sample_rate, "sample_rate"));
    const absl::MutexLock lock(&mutex_);
    if (edges_ == nullptr || edges_->bins != bins ||
        edges_->sample_rate != rate) {
      OPTFARM_ASSIGN_OR_RETURN(edges_, MakeMelEdges(attrs_, bins, rate));
    }
    return edges_;
  }

  // Calls run(begin, end, slices) for ranges of `count` slices, in parallel.
  template <typename Function>
  void Run(const MelEdges& edges, int64_t count, ThreadPool* pool,
           const Function& run) const {
    pool->ParallelFor((count + kMostAudioLanes - 1) / kMostAudioLanes, 1,
                      [&](int64_t begin, int64_t end) {
                        LeaveIfRunEnded();
                        const Scratch<double> scratch(
                            kMostAudioLanes * (edges.bins + attrs_.bands));
                        MelSlices slices;
                        slices.bins = edges.bins;
                        slices.bands = attrs_.bands;
                        slices.edges = edges.edges.data();
                        slices.weights = edges.weights.data();
                        slices.least = kLeastBand;
                        slices.coefficients = attrs_.coefficients;
                        slices.cosines = cosines_.data();
                        slices.scratch = scratch.data();
                        run(begin * kMostAudioLanes,
                            std::min(count, end * kMostAudioLanes), slices);
                      });
  }

 private:
  const MfccAttrs attrs_;
  const std::vector<double> cosines_;
  mutable absl::Mutex mutex_;
  // Those of the last run.
  mutable std::shared_ptr<const MelEdges> edges_ ABSL_GUARDED_BY(mutex_);
};

class FastMfcc final : public Kernel {
 public:
  FastMfcc(const MfccAttrs& attrs, const AudioFunctions& functions,
           StepChain chain)
      : plan_(attrs), functions_(functions), chain_(std::move(chain)) {}

  absl::Status Compute(KernelContext* context) const override {
    const Tensor& spectrogram = context->input(0);
    if (spectrogram.dtype() != tensorflow::DT_FLOAT ||
        spectrogram.rank() != 3 || spectrogram.dim(2) > kMostFourier + 1) {
      return chain_.Run(context);
    }
    const int64_t bins = spectrogram.dim(2);
    const auto edges = plan_.EdgesOf(bins, context->input(1));
    if (!edges.ok()) return chain_.Run(context);
    const int64_t coefficients = plan_.attrs().coefficients;
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             WithDim(spectrogram.shape(), 2, coefficients));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, spectrogram.dtype(), shape));
    plan_.Run(**edges, shape.dim(0) * shape.dim(1), context->pool(),
              [&](int64_t begin, int64_t end, MelSlices slices) {
                slices.spectrum = spectrogram.data<float>() + begin * bins;
                slices.slices = end - begin;
                slices.out = out->data<float>() + begin * coefficients;
                functions_.mel(slices);
              });
    return absl::OkStatus();
  }

 private:
  const MelPlan plan_;
  const AudioFunctions& functions_;
  const StepChain chain_;
};

// A spectrogram that nobody but Mfcc reads: bins that no band takes are not
// found, and none are written.
class FastSoundCoefficients final : public Kernel {
 public:
  FastSoundCoefficients(const SpectrogramAttrs& spectrogram,
                        const MfccAttrs& mfcc, const AudioFunctions& functions,
                        StepChain chain)
      : spectrogram_(spectrogram, functions),
        mel_(mfcc),
        functions_(functions),
        chain_(std::move(chain)) {}

  absl::Status Compute(KernelContext* context) const override {
    const Tensor& input = context->input(0);
    const absl::StatusOr<Shape> spectrum =
        SpectrogramShape(spectrogram_.attrs(), input);
    if (!spectrum.ok()) return chain_.Run(context);
    const int64_t bins = spectrum->dim(2);
    const auto edges = mel_.EdgesOf(bins, context->input(1));
    if (!edges.ok()) return chain_.Run(context);
    const int64_t coefficients = mel_.attrs().coefficients;
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             WithDim(*spectrum, 2, coefficients));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, input.dtype(), shape));
    const float* samples = input.data<float>();
    float* to = out->data<float>();
    mel_.Run(**edges, shape.dim(0) * shape.dim(1), context->pool(),
             [&](int64_t begin, int64_t end, MelSlices mel) {
               const Scratch<float> one(bins);
               mel.ordered = one.data();
               spectrogram_.Run(samples, *spectrum, begin, end, kMostAudioLanes,
                                [&](SpectrogramSlices slices, int64_t first) {
                                  spectrogram_.Limit((*edges)->edges.front(),
                                                     (*edges)->edges.back(),
                                                     &slices);
                                  mel.out = to + first * coefficients;
                                  functions_.coefficients(slices, mel);
                                });
             });
    return absl::OkStatus();
  }

 private:
  const SpectrogramPlan spectrogram_;
  const MelPlan mel_;
  const AudioFunctions& functions_;
  const StepChain chain_;
};

// Puts Fast{attrs..., functions, chain} in the place of the last of `members`.
template <typename Fast, typename... Attrs>
void Replace(absl::Span<const int> members, std::vector<int> inputs,
             const AudioFunctions& functions, PlanEditor* plan,
             const Attrs&... attrs) {
  FusedStep fused;
  fused.inputs = std::move(inputs);
  fused.outputs = plan->step(members.back())->outputs;
  if (!plan->MayFuse(members, fused.outputs)) return;
  fused.kernel = std::make_unique<Fast>(
      attrs..., functions,
      plan->TakeChain(members, fused.inputs, fused.outputs));
  plan->Fuse(members, std::move(fused));
}

// The attributes of a step that fast spectrograms can do.
std::optional<SpectrogramAttrs> FastAttrs(const Step* step) {
  if (step == nullptr || step->node == nullptr ||
      step->op != "AudioSpectrogram" || step->inputs.size() != 1) {
    return std::nullopt;
  }
  const auto attrs = ReadSpectrogramAttrs(*step->node);
  if (!attrs.ok() || attrs->fft_size / 2 < kLeastFourier ||
      attrs->fft_size / 2 > kMostFourier) {
    return std::nullopt;
  }
  return *attrs;
}

// Mfcc, and the spectrogram with it that it alone reads.
void ReplaceMfcc(int number, const AudioFunctions& functions,
                 PlanEditor* plan) {
  const Step& step = *plan->step(number);
  if (step.node == nullptr || step.op != "Mfcc" || step.inputs.size() != 2) {
    return;
  }
  const auto attrs = ReadMfccAttrs(*step.node);
  if (!attrs.ok()) return;
  const int before = plan->ProducerOf(step.inputs[0]);
  const Step* const maker = before == kNoStep ? nullptr : plan->step(before);
  const std::optional<SpectrogramAttrs> spectrogram = FastAttrs(maker);
  if (spectrogram.has_value() && plan->OnlyReaderOf(step.inputs[0]) == number &&
      plan->MayFuse({before, number}, step.outputs)) {
    Replace<FastSoundCoefficients>({before, number},
                                   {maker->inputs[0], step.inputs[1]},
                                   functions, plan, *spectrogram, *attrs);
  } else {
    Replace<FastMfcc>({number}, step.inputs, functions, plan, *attrs);
  }
}

void ReplaceAudio(const CpuFeatures& cpu, PlanEditor* plan) {
  const AudioFunctions* functions =
      SelectFunctions(&MicroKernelFunction::audio, cpu);
  if (functions == nullptr) return;
  for (int i = 0; i < plan->step_count(); ++i) {
    if (plan->step(i) != nullptr) ReplaceMfcc(i, *functions, plan);
  }
  for (int i = 0; i < plan->step_count(); ++i) {
    const Step* step = plan->step(i);
    const std::optional<SpectrogramAttrs> attrs = FastAttrs(step);
    if (attrs.has_value()) {
      Replace<FastSpectrogram>({i}, step->inputs, *functions, plan, *attrs);
    }
  }
}

}  // namespace

const Fusion kAudioFusion = {
    .name = "audio",
    .pattern = "[AudioSpectrogram] Mfcc; AudioSpectrogram",
    .replacement = "the same with a Fourier transform on vectors",
    .run = ReplaceAudio,
};

}  // namespace optfarm::runtime
