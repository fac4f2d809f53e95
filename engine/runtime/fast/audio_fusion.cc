// AudioSpectrogram and Mfcc.

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "engine/runtime/fast/audio_functions.h"
#include "engine/runtime/fast/families.h"
#include "engine/runtime/kernels/arguments.h"
#include "engine/runtime/kernels/mel_bands.h"
#include "engine/runtime/kernels/spectrogram_attrs.h"
#include "engine/runtime/run_bounds.h"
#include "engine/runtime/scratch.h"

namespace optfarm::runtime {
namespace {

// UNITS: complex values; tables of larger ones take more than they are worth.
constexpr int64_t kMostFourier = 1 << 16;
// UNITS: slices worth handing to another thread.
constexpr int64_t kGrain = 8;

// Roots of one for transforms of one size.
class FourierTables {
 public:
  explicit FourierTables(int64_t size) {
    int64_t stride = 1;
    int left = 0;
    while ((int64_t{1} << left) < size) ++left;
    // Eight where the rest is a multiple of three binary digits, and at first.
    for (; left > 0; left -= passes_.back().radix == 8 ? 3 : 2) {
      const bool is_eight = stride == 1 || left % 3 == 0;
      AddPass(is_eight ? 8 : 4, stride, size);
      stride *= passes_.back().radix;
    }
    for (int64_t k = 0; k <= size / 2 + 8; ++k) AddRoot(k, 2 * size, &apart_);
    for (size_t i = 0; i < passes_.size(); ++i) {
      passes_[i].re = turns_[i].re.data();
      passes_[i].im = turns_[i].im.data();
    }
  }

  void PutInto(SpectrogramSlices* slices) const {
    slices->passes = passes_.data();
    slices->pass_count = static_cast<int>(passes_.size());
    slices->root_re = apart_.re.data();
    slices->root_im = apart_.im.data();
  }

 private:
  struct Roots {
    std::vector<double> re;
    std::vector<double> im;
  };

  // exp(-2 pi i k / order).
  static void AddRoot(int64_t k, int64_t order, Roots* roots) {
    const double angle = -2.0 * std::numbers::pi * static_cast<double>(k) /
                         static_cast<double>(order);
    roots->re.push_back(std::cos(angle));
    roots->im.push_back(std::sin(angle));
  }

  void AddPass(int radix, int64_t stride, int64_t size) {
    const int64_t order = size / stride;
    FourierPass pass;
    pass.radix = radix;
    pass.stride = stride;
    pass.count = order / radix;
    Roots roots;
    const int64_t outer = stride == 1 ? radix - 1 : pass.count;
    const int64_t inner = stride == 1 ? pass.count : radix - 1;
    for (int64_t i = 0; i < outer; ++i) {
      for (int64_t j = 0; j < inner; ++j) {
        AddRoot(stride == 1 ? (i + 1) * j : i * (j + 1), order, &roots);
      }
    }
    passes_.push_back(pass);
    turns_.push_back(std::move(roots));
  }

  std::vector<FourierPass> passes_;
  std::vector<Roots> turns_;
  Roots apart_;
};

class FastSpectrogram final : public Kernel {
 public:
  FastSpectrogram(const SpectrogramAttrs& attrs, const AudioFunctions& code,
                  StepChain chain)
      : attrs_(attrs),
        code_(code),
        window_((attrs.window + kWindowBlock - 1) / kWindowBlock *
                kWindowBlock),
        even_(window_ / 2),
        odd_(window_ / 2),
        tables_(attrs.fft_size / 2),
        chain_(std::move(chain)) {
    const std::vector<double> hann = HannWindow(attrs.window);
    for (int64_t i = 0; i < attrs.window; ++i) {
      (i % 2 == 0 ? even_ : odd_)[i / 2] = hann[i];
    }
  }

  absl::Status Compute(KernelContext* context) const override {
    const Tensor& input = context->input(0);
    const absl::StatusOr<Shape> shape = SpectrogramShape(attrs_, input);
    if (!shape.ok()) return chain_.Run(context);
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, input.dtype(), *shape));
    const int64_t slices = shape->dim(1);
    const float* samples = input.data<float>();
    float* to = out->data<float>();
    context->pool()->ParallelFor(
        shape->dim(0) * slices, kGrain, [&](int64_t begin, int64_t end) {
          const Scratch<double> scratch(4 * attrs_.fft_size / 2);
          SpectrogramSlices some = Slices(scratch.data());
          some.out = to + begin * attrs_.bins();
          if (shape->dim(0) == 1 && window_ == attrs_.window) {
            some.samples = samples + begin * attrs_.stride;
            some.stride = attrs_.stride;
            some.slices = end - begin;
            return code_.spectrogram(some);
          }
          RunCopied(samples, *shape, begin, end, some);
        });
    return absl::OkStatus();
  }

 private:
  SpectrogramSlices Slices(double* scratch) const {
    SpectrogramSlices slices;
    slices.window = window_;
    slices.even = even_.data();
    slices.odd = odd_.data();
    slices.size = attrs_.fft_size / 2;
    tables_.PutInto(&slices);
    slices.is_squared = attrs_.is_squared;
    slices.scratch = scratch;
    return slices;
  }

  // Slice by slice, whose samples are put side by side and filled up.
  void RunCopied(const float* samples, const Shape& shape, int64_t begin,
                 int64_t end, SpectrogramSlices one) const {
    const Scratch<float> copy(window_);
    std::fill_n(copy.data(), window_, 0.0f);
    one.samples = copy.data();
    one.slices = 1;
    const int64_t channels = shape.dim(0);
    for (int64_t i = begin; i < end; ++i, one.out += attrs_.bins()) {
      const float* from = samples +
                          i % shape.dim(1) * attrs_.stride * channels +
                          i / shape.dim(1);
      for (int64_t k = 0; k < attrs_.window; ++k) {
        copy[k] = from[k * channels];
      }
      code_.spectrogram(one);
    }
  }

  const SpectrogramAttrs attrs_;
  const AudioFunctions& code_;
  const int64_t window_;
  std::vector<double> even_;
  std::vector<double> odd_;
  const FourierTables tables_;
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

class FastMfcc final : public Kernel {
 public:
  FastMfcc(const MfccAttrs& attrs, const AudioFunctions& code, StepChain chain)
      : attrs_(attrs),
        code_(code),
        cosines_(MfccCosines(attrs)),
        chain_(std::move(chain)) {}

  absl::Status Compute(KernelContext* context) const override {
    const Tensor& spectrogram = context->input(0);
    if (spectrogram.dtype() != tensorflow::DT_FLOAT ||
        spectrogram.rank() != 3 || spectrogram.dim(2) > kMostFourier + 1) {
      return chain_.Run(context);
    }
    const int64_t bins = spectrogram.dim(2);
    const auto rate = ReadInteger(context->input(1), "sample_rate");
    if (!rate.ok()) return chain_.Run(context);
    const auto edges = EdgesOf(bins, *rate);
    if (!edges.ok()) return chain_.Run(context);
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, WithDim(spectrogram.shape(), 2,
                                                        attrs_.coefficients));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, spectrogram.dtype(), shape));
    MelSlices slices;
    slices.bins = bins;
    slices.bands = attrs_.bands;
    slices.edges = (*edges)->edges.data();
    slices.weights = (*edges)->weights.data();
    slices.least = kLeastBand;
    slices.coefficients = attrs_.coefficients;
    slices.cosines = cosines_.data();
    const int64_t count = shape.dim(0) * shape.dim(1);
    context->pool()->ParallelFor(
        (count + kMostAudioLanes - 1) / kMostAudioLanes, kGrain,
        [&](int64_t begin, int64_t end) {
          LeaveIfRunEnded();
          const Scratch<double> scratch(kMostAudioLanes *
                                        (bins + attrs_.bands));
          const int64_t first = begin * kMostAudioLanes;
          MelSlices some = slices;
          some.scratch = scratch.data();
          some.spectrum = spectrogram.data<float>() + first * bins;
          some.slices = std::min(count, end * kMostAudioLanes) - first;
          some.out = out->data<float>() + first * attrs_.coefficients;
          code_.mel(some);
        });
    return absl::OkStatus();
  }

 private:
  // The bands are placed when a run first has such a spectrum: a model has one.
  absl::StatusOr<std::shared_ptr<const MelEdges>> EdgesOf(
      int64_t bins, int64_t sample_rate) const {
    const absl::MutexLock lock(&mutex_);
    if (edges_ == nullptr || edges_->bins != bins ||
        edges_->sample_rate != sample_rate) {
      OPTFARM_ASSIGN_OR_RETURN(edges_, MakeMelEdges(attrs_, bins, sample_rate));
    }
    return edges_;
  }

  const MfccAttrs attrs_;
  const AudioFunctions& code_;
  const std::vector<double> cosines_;
  const StepChain chain_;
  mutable absl::Mutex mutex_;
  // Those of the last run.
  mutable std::shared_ptr<const MelEdges> edges_ ABSL_GUARDED_BY(mutex_);
};

const AudioFunctions* FindAudioFunctions(const CpuFeatures& cpu) {
#if defined(__x86_64__)
  if (cpu.avx512) return &Avx512AudioFunctions();
  if (cpu.avx2) return &Avx2AudioFunctions();
#else
  (void)cpu;
#endif
  return nullptr;
}

// Puts Fast{attrs, code, chain} in the place of a step.
template <typename Fast, typename Attrs>
void Replace(int number, const Attrs& attrs, const AudioFunctions& code,
             PlanEditor* plan) {
  const Step& step = *plan->step(number);
  if (!plan->MayFuse({number}, step.outputs)) return;
  FusedStep fused;
  fused.inputs = step.inputs;
  fused.outputs = step.outputs;
  fused.kernel = std::make_unique<Fast>(
      attrs, code, plan->TakeChain({number}, fused.inputs, fused.outputs));
  plan->Fuse({number}, std::move(fused));
}

}  // namespace

void ReplaceAudio(const FusionContext& context, PlanEditor* plan) {
  const AudioFunctions* code = FindAudioFunctions(context.cpu());
  if (code == nullptr) return;
  for (int i = 0; i < plan->step_count(); ++i) {
    const Step* step = plan->step(i);
    if (step == nullptr || step->node == nullptr) continue;
    if (step->op == "AudioSpectrogram" && step->inputs.size() == 1) {
      const auto attrs = ReadSpectrogramAttrs(*step->node);
      if (attrs.ok() && attrs->fft_size / 2 >= kLeastFourier &&
          attrs->fft_size / 2 <= kMostFourier) {
        Replace<FastSpectrogram>(i, *attrs, *code, plan);
      }
    } else if (step->op == "Mfcc" && step->inputs.size() == 2) {
      const auto attrs = ReadMfccAttrs(*step->node);
      if (attrs.ok()) Replace<FastMfcc>(i, *attrs, *code, plan);
    }
  }
}

}  // namespace optfarm::runtime
