#include "engine/runtime/reference/math/line_transform.h"

#include <bit>
#include <cmath>
#include <utility>

namespace optfarm::runtime {
namespace {

constexpr double kPi = 3.14159265358979323846;

size_t PaddedSize(size_t size) {
  return size <= 1 || std::has_single_bit(size) ? size
                                                : std::bit_ceil(2 * size);
}

}  // namespace

LineTransform::LineTransform(size_t size, int sign)
    : size_(size), sign_(sign), padded_(PaddedSize(size)), roots_(padded_) {
  // Those of order 2 * half stand from half on.
  for (size_t half = 1; half < padded_; half *= 2) {
    for (size_t k = 0; k < half; ++k) {
      roots_[half + k] = std::polar(
          1.0, -kPi * static_cast<double>(k) / static_cast<double>(half));
    }
  }
  if (padded_ != size_) AddChirp();
}

void LineTransform::Run(CountedVector<Complex128>* line) const {
  if (padded_ == size_) return RunPowerOfTwo(line, sign_);
  // Bluestein: nk = (n^2 + k^2 - (k - n)^2) / 2 makes it a convolution.
  CountedVector<Complex128> a(padded_);
  for (size_t i = 0; i < size_; ++i) a[i] = (*line)[i] * chirp_[i];
  RunPowerOfTwo(&a, -1);
  for (size_t i = 0; i < padded_; ++i) a[i] *= spectrum_[i];
  RunPowerOfTwo(&a, 1);
  for (size_t i = 0; i < size_; ++i) {
    (*line)[i] = a[i] / static_cast<double>(padded_) * chirp_[i];
  }
}

void LineTransform::AddChirp() {
  chirp_.resize(size_);
  spectrum_.resize(padded_);
  for (uint64_t i = 0; i < size_; ++i) {
    const uint64_t square = i * i % (2 * size_);
    chirp_[i] = std::polar(1.0, sign_ * kPi * static_cast<double>(square) /
                                    static_cast<double>(size_));
    spectrum_[i] = std::conj(chirp_[i]);
    if (i > 0) spectrum_[padded_ - i] = spectrum_[i];
  }
  RunPowerOfTwo(&spectrum_, -1);
}

void LineTransform::RunPowerOfTwo(CountedVector<Complex128>* values,
                                  int sign) const {
  CountedVector<Complex128>& v = *values;
  const size_t size = v.size();
  for (size_t i = 1, j = 0; i < size; ++i) {
    size_t bit = size >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(v[i], v[j]);
  }
  for (size_t half = 1; half < size; half *= 2) {
    for (size_t start = 0; start < size; start += 2 * half) {
      for (size_t k = 0; k < half; ++k) {
        const Complex128 root = roots_[half + k];
        const Complex128 value = v[start + half + k];
        const double turn = -sign * root.imag();
        const Complex128 odd(value.real() * root.real() - value.imag() * turn,
                             value.real() * turn + value.imag() * root.real());
        v[start + half + k] = v[start + k] - odd;
        v[start + k] += odd;
      }
    }
  }
}

}  // namespace optfarm::runtime
