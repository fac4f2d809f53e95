// AudioSpectrogram and Mfcc, in double precision inside as TensorFlow has them.
// The spectrogram is that of a periodic Hann window and a Fourier transform
// of the next power of two; the coefficients are the cosine transform of the
// logarithm of triangular mel bands.

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/audio/mel_bands.h"
#include "engine/runtime/reference/audio/spectrogram_attrs.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// Slices that are transformed together, one in each place of a vector: what
// happens within a transform would move values between places otherwise.
constexpr int kLanes = 4;
using Lanes = double __attribute__((vector_size(kLanes * sizeof(double))));

// The discrete Fourier transform of `size` real values, a power of two: that of
// half as many complex ones, taken apart.
class RealFft {
 public:
  explicit RealFft(int64_t size)
      : size_(size), half_(size / 2), places_(half_), real_(size), imag_(size) {
    for (int64_t i = 1, j = 0; i < half_; ++i) {
      int64_t bit = half_ >> 1;
      for (; j & bit; bit >>= 1) j ^= bit;
      j ^= bit;
      places_[i] = j;
    }
    // Roots of order 2 * n stand from n on.
    for (int64_t n = 1; n <= half_; n *= 2) {
      for (int64_t k = 0; k < n && n + k < size_; ++k) {
        const double angle =
            -std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
        real_[n + k] = std::cos(angle);
        imag_[n + k] = std::sin(angle);
      }
    }
  }

  // Values 0 to size / 2 of the transform of value(0), value(1), ... `re` and
  // `im` have room for one more than half of them.
  template <typename Value>
  void Run(Value value, Lanes* re, Lanes* im) const {
    for (int64_t i = 0; i < half_; ++i) {
      re[places_[i]] = value(2 * i);
      im[places_[i]] = value(2 * i + 1);
    }
    for (int64_t n = 1; n < half_; n *= 2) {
      for (int64_t start = 0; start < half_; start += 2 * n) {
        Combine(n, re + start, im + start);
      }
    }
    TakeApart(re, im);
  }

 private:
  // Two transforms of n values, one behind the other, make one of 2 * n.
  void Combine(int64_t n, Lanes* __restrict re, Lanes* __restrict im) const {
    const double* root_re = real_.data() + n;
    const double* root_im = imag_.data() + n;
    for (int64_t k = 0; k < n; ++k) {
      const Lanes odd_re = re[n + k] * root_re[k] - im[n + k] * root_im[k];
      const Lanes odd_im = re[n + k] * root_im[k] + im[n + k] * root_re[k];
      re[n + k] = re[k] - odd_re;
      im[n + k] = im[k] - odd_im;
      re[k] += odd_re;
      im[k] += odd_im;
    }
  }

  // From the transform of even + i * odd values to that of all.
  void TakeApart(Lanes* re, Lanes* im) const {
    const Lanes first = re[0], second = im[0];
    re[0] = first + second;
    im[0] = Lanes{};
    re[half_] = first - second;
    im[half_] = Lanes{};
    for (int64_t k = 1; 2 * k <= half_; ++k) {
      const int64_t j = half_ - k;
      const Lanes even_re = 0.5 * (re[k] + re[j]);
      const Lanes even_im = 0.5 * (im[k] - im[j]);
      const Lanes odd_re = 0.5 * (im[k] + im[j]);
      const Lanes odd_im = 0.5 * (re[j] - re[k]);
      const double c = real_[half_ + k], s = imag_[half_ + k];
      const Lanes turned_re = c * odd_re - s * odd_im;
      const Lanes turned_im = c * odd_im + s * odd_re;
      re[k] = even_re + turned_re;
      im[k] = even_im + turned_im;
      // The other one is the conjugate's.
      re[j] = even_re - turned_re;
      im[j] = turned_im - even_im;
    }
  }

  int64_t size_;
  int64_t half_;
  // Where each value goes before the first combination.
  std::vector<int64_t> places_;
  std::vector<double> real_;
  std::vector<double> imag_;
};

class Spectrogram final : public Kernel {
 public:
  explicit Spectrogram(const SpectrogramAttrs& attrs)
      : attrs_(attrs), fft_(attrs.fft_size), hann_(HannWindow(attrs.window)) {}

  absl::Status Compute(KernelContext* context) const override {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             SpectrogramShape(attrs_, input));
    const int64_t channels = shape.dim(0);
    const int64_t slices = shape.dim(1);
    const int64_t bins = shape.dim(2);
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, tensorflow::DT_FLOAT, shape));
    const int64_t count = channels * slices;
    context->pool()->ParallelFor(
        (count + kLanes - 1) / kLanes, 1, [&](int64_t begin, int64_t end) {
          Buffers buffers(attrs_.fft_size);
          const float* starts[kLanes];
          for (int64_t first = begin * kLanes; first < end * kLanes;
               first += kLanes) {
            // Places without a slice repeat the last one.
            for (int lane = 0; lane < kLanes; ++lane) {
              const int64_t i = std::min(first + lane, count - 1);
              starts[lane] = input.data<float>() +
                             i % slices * attrs_.stride * channels + i / slices;
            }
            TransformSlices(starts, channels, &buffers);
            const int64_t some = std::min<int64_t>(kLanes, count - first);
            for (int64_t lane = 0; lane < some; ++lane) {
              StoreSlice(buffers, lane,
                         out->data<float>() + (first + lane) * bins);
            }
          }
        });
    return absl::OkStatus();
  }

 private:
  struct Buffers {
    explicit Buffers(int64_t size) : re(size / 2 + 1), im(size / 2 + 1) {}
    std::vector<Lanes> re;
    std::vector<Lanes> im;
  };

  // Leaves magnitudes, or their squares, in the buffers' real parts.
  void TransformSlices(const float* const (&starts)[kLanes], int64_t channels,
                       Buffers* buffers) const {
    const auto value = [&](int64_t k) {
      Lanes values = {};
      if (k >= attrs_.window) return values;
      for (int lane = 0; lane < kLanes; ++lane) {
        values[lane] = static_cast<double>(starts[lane][k * channels]);
      }
      return values * hann_[k];
    };
    fft_.Run(value, buffers->re.data(), buffers->im.data());
    for (int64_t k = 0; k < attrs_.bins(); ++k) {
      const Lanes re = buffers->re[k], im = buffers->im[k];
      Lanes square = re * re + im * im;
      if (!attrs_.is_squared) {
        for (int lane = 0; lane < kLanes; ++lane) {
          square[lane] = std::sqrt(square[lane]);
        }
      }
      buffers->re[k] = square;
    }
  }

  void StoreSlice(const Buffers& buffers, int64_t lane, float* out) const {
    for (int64_t k = 0; k < attrs_.bins(); ++k) {
      out[k] = static_cast<float>(buffers.re[k][lane]);
    }
  }

  const SpectrogramAttrs attrs_;
  RealFft fft_;
  std::vector<double> hann_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeSpectrogram(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const SpectrogramAttrs attrs,
                           ReadSpectrogramAttrs(node));
  return std::make_unique<Spectrogram>(attrs);
}

class Mfcc final : public Kernel {
 public:
  explicit Mfcc(const MfccAttrs& attrs)
      : attrs_(attrs), cosines_(MfccCosines(attrs)) {}

  absl::Status Compute(KernelContext* context) const override {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& spectrogram = context->input(0);
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(spectrogram, "spectrogram", tensorflow::DT_FLOAT));
    OPTFARM_RETURN_IF_ERROR(RequireRank(spectrogram, "spectrogram", 3));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t sample_rate,
                             ReadInteger(context->input(1), "sample_rate"));
    const int64_t bins = spectrogram.dim(2);
    OPTFARM_ASSIGN_OR_RETURN(
        const MelBands mel,
        MelBands::Create(attrs_, bins, static_cast<double>(sample_rate)));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, WithDim(spectrogram.shape(), 2,
                                                        attrs_.coefficients));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, tensorflow::DT_FLOAT, shape));
    std::vector<double> bands(attrs_.bands);
    for (int64_t r = 0; r < shape.dim(0) * shape.dim(1); ++r) {
      mel.Sum(spectrogram.data<float>() + r * bins, &bands);
      for (double& band : bands) band = std::log(std::max(band, kLeastBand));
      for (int64_t i = 0; i < attrs_.coefficients; ++i) {
        double sum = 0.0;
        for (int64_t j = 0; j < attrs_.bands; ++j) {
          sum += cosines_[i * attrs_.bands + j] * bands[j];
        }
        out->data<float>()[r * attrs_.coefficients + i] =
            static_cast<float>(sum);
      }
    }
    return absl::OkStatus();
  }

 private:
  MfccAttrs attrs_;
  std::vector<double> cosines_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeMfcc(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const MfccAttrs attrs, ReadMfccAttrs(node));
  return std::make_unique<Mfcc>(attrs);
}

}  // namespace

void AddAudioKernels(KernelCatalog* catalog) {
  catalog->Add("AudioSpectrogram", MakeSpectrogram);
  catalog->Add("Mfcc", MakeMfcc);
}

}  // namespace optfarm::runtime
