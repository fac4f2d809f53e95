#include "engine/runtime/ukernels/audio/fourier_tables.h"

#include <cmath>
#include <numbers>
#include <utility>

namespace optfarm::runtime {
namespace {

// Of the next pass, when `left` binary digits are to come: none are left over
// for a pass of two, which there is at first only.
int NextRadix(int left, bool is_first) {
  if (is_first && left < 3) return 1 << left;
  const bool is_eight = is_first ? left != 4 : left % 3 == 0;
  return is_eight ? 8 : 4;
}

}  // namespace

void FourierTables::Roots::Add(int64_t numerator, int64_t denominator) {
  const double angle = -2.0 * std::numbers::pi *
                       static_cast<double>(numerator) /
                       static_cast<double>(denominator);
  re.push_back(std::cos(angle));
  im.push_back(std::sin(angle));
}

void FourierTables::Roots::AddTurn(int radix, int64_t numerator,
                                   int64_t denominator) {
  for (int power = radix / 2; power >= 1; power /= 2) {
    Add(power * numerator, denominator);
  }
  if (radix == 8) Add(8 * numerator + denominator, 8 * denominator);
}

FourierTables::FourierTables(int64_t size, int lanes)
    : size_(size), lanes_(lanes) {
  AddPasses();
  AddRows();
}

void FourierTables::AddPasses() {
  int64_t count = 1;
  int left = 0;
  while (FourierRow(lanes_) << left < size_) ++left;
  do {
    FourierPass pass;
    pass.radix = NextRadix(left, passes_.empty());
    pass.count = count;
    pass.stride = size_ / (count * pass.radix);
    pass.pitch =
        pass.stride == FourierRow(lanes_) ? FourierPitch(lanes_) : pass.stride;
    Roots roots;
    if (!passes_.empty()) {
      for (int64_t p = 0; p < count; ++p) {
        roots.AddTurn(pass.radix, p, count * pass.radix);
      }
    }
    turns_.push_back(std::move(roots));
    passes_.push_back(pass);
    count *= pass.radix;
    for (int radix = pass.radix; radix > 1; radix /= 2) --left;
  } while (left > 0);
  for (size_t i = 0; i < passes_.size(); ++i) {
    passes_[i].re = turns_[i].re.data();
    passes_[i].im = turns_[i].im.data();
  }
}

void FourierTables::AddRows() {
  const int64_t rows = size_ / FourierRow(lanes_);
  for (int64_t row = 0; row < rows; ++row) {
    columns_.AddTurn(lanes_, row, rows * lanes_);
    // By place: the roots stand one after the other in AddTurn.
    Roots by_place;
    for (int place = 0; place < lanes_; ++place) {
      by_place.AddTurn(lanes_, row + rows * place, size_);
    }
    const int count = FourierRoots(lanes_);
    for (int i = 0; i < count; ++i) {
      for (int place = 0; place < lanes_; ++place) {
        places_.re.push_back(by_place.re[place * count + i]);
        places_.im.push_back(by_place.im[place * count + i]);
      }
    }
    for (int64_t k = 0; k < FourierPitch(lanes_); ++k) {
      apart_.Add(row + rows * k, 2 * size_);
    }
  }
}

void FourierTables::PutInto(SpectrogramSlices* slices) const {
  slices->size = size_;
  slices->passes = passes_.data();
  slices->pass_count = static_cast<int>(passes_.size());
  slices->column_re = columns_.re.data();
  slices->column_im = columns_.im.data();
  slices->place_re = places_.re.data();
  slices->place_im = places_.im.data();
  slices->apart_re = apart_.re.data();
  slices->apart_im = apart_.im.data();
}

}  // namespace optfarm::runtime
