#include "engine/runtime/operators/int8_padded_rows.h"

#include <algorithm>
#include <cstring>

namespace optfarm::runtime {
namespace {

constexpr int64_t kNothing = -1;

// Places for rows: those from the first under a window to the last.
int64_t PlacesFor(const WindowAxis& y) {
  return std::min((y.size - 1) * y.dilation + 1, y.in);
}

}  // namespace

// Behind the places is a row of padding.
Int8PaddedRows::Int8PaddedRows(const Int8Gemm& gemm)
    : input_(gemm.input),
      kr_(gemm.weights.layout().kr),
      padding_value_(
          static_cast<uint8_t>(std::clamp(input_.zero_point, 0, 255))),
      step_(input_.window.x.stride * input_.channels),
      tap_groups_(gemm.weights.padded_depth() / input_.window.y.size / kr_),
      row_bytes_((input_.window.x.out - 1) * step_ + tap_groups_ * kr_),
      held_(static_cast<size_t>(PlacesFor(input_.window.y)), kNothing),
      rows_((PlacesFor(input_.window.y) + 1) * row_bytes_),
      taps_(static_cast<size_t>(input_.window.y.size)) {
  std::memset(rows_.data() + PlacesFor(input_.window.y) * row_bytes_,
              padding_value_, static_cast<size_t>(row_bytes_));
}

void Int8PaddedRows::MoveTo(int64_t row) {
  const WindowAxis& y = input_.window.y;
  const int64_t first = row % y.out * y.stride - y.pad_before;
  for (int64_t tap = 0; tap < y.size; ++tap) {
    taps_[tap] = RowAt(row / y.out, first + tap * y.dilation);
  }
}

Int8PaddedRows::Bytes Int8PaddedRows::After(int64_t row) const {
  const WindowAxis& y = input_.window.y;
  const int64_t reach = (y.size - 1) * y.dilation + 1;
  const int64_t first = row % y.out * y.stride - y.pad_before + reach;
  const int64_t begin = std::clamp<int64_t>(first, 0, y.in);
  const int64_t end = std::clamp<int64_t>(first + y.stride, begin, y.in);
  const int64_t values = input_.window.x.in * input_.channels;
  return {input_.values + (row / y.out * y.in + begin) * values,
          (end - begin) * values};
}

const uint8_t* Int8PaddedRows::GroupOf(int64_t group) const {
  return taps_[group / tap_groups_] + group % tap_groups_ * kr_;
}

const uint8_t* Int8PaddedRows::RowAt(int64_t image, int64_t y) {
  const int64_t height = input_.window.y.in;
  const auto places = static_cast<int64_t>(held_.size());
  if (y < 0 || y >= height) return rows_.data() + places * row_bytes_;
  const int64_t place = y % places;
  const int64_t row = image * height + y;
  uint8_t* padded = rows_.data() + place * row_bytes_;
  if (held_[place] != row) PadRow(row, padded);
  held_[place] = row;
  return padded;
}

// No window reads what may lie behind the last one's values, and the weights
// are zero for what fills up the last group.
void Int8PaddedRows::PadRow(int64_t row, uint8_t* to) const {
  const WindowAxis& x = input_.window.x;
  const int64_t all = x.in * input_.channels;
  const int64_t before = std::min(x.pad_before * input_.channels, row_bytes_);
  const int64_t count = std::min(all, row_bytes_ - before);
  std::memset(to, padding_value_, static_cast<size_t>(before));
  std::memcpy(to + before, input_.values + row * all,
              static_cast<size_t>(count));
  std::memset(to + before + count, padding_value_,
              static_cast<size_t>(row_bytes_ - before - count));
}

}  // namespace optfarm::runtime
