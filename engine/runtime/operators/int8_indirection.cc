#include "engine/runtime/operators/int8_indirection.h"

#include <algorithm>
#include <cstring>

namespace optfarm::runtime {
namespace {

// Most copies are of a dozen values, for which memcpy's call takes longer than
// its work.
void CopyValues(const uint8_t* from, int64_t count, uint8_t* to) {
  for (; count >= 8; count -= 8, from += 8, to += 8) std::memcpy(to, from, 8);
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

// Packed rows that are kept for the next panels: less than level-2 caches have.
// UNITS: bytes.
constexpr int64_t kMostKept = 256 * 1024;

int64_t RoundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

Int8IndirectionBuffer::Form Int8IndirectionBuffer::FormOf(
    const Int8Gemm& gemm) {
  if (gemm.is_by_row) return Form::kRows;
  if (gemm.input.channels % gemm.weights.layout().kr != 0) {
    return Form::kCopies;
  }
  return gemm.input.is_matrix() ? Form::kMatrix : Form::kPixels;
}

Int8IndirectionBuffer::Int8IndirectionBuffer(const Int8Gemm& gemm,
                                             const int32_t* row_sums,
                                             int64_t repeated)
    : input_(gemm.input),
      row_sums_(row_sums),
      sum_values_(gemm.kernels.stages->sum_values),
      weights_zero_point_(gemm.weights.zero_point()),
      panel_(gemm.weights.layout()),
      form_(FormOf(gemm)),
      end_(input_.values + input_.batch * input_.window.y.in *
                               input_.window.x.in * input_.channels),
      padding_value_(
          static_cast<uint8_t>(std::clamp(input_.zero_point, 0, 255))) {
  const WindowAxis &y = input_.window.y, &x = input_.window.x;
  if (form_ == Form::kPixels) {
    taps_ = y.size * x.size;
  } else if (form_ == Form::kRows) {
    taps_ = y.size;
  }
  tap_values_ = input_.depth() / taps_;
  tap_depth_ = RoundUp(gemm.weights.depth(), panel_.kr) / taps_;
  for (int64_t tap = 0; tap < taps_; ++tap) {
    const int64_t in_row = form_ == Form::kPixels ? x.size : 1;
    offsets_.push_back(
        (tap / in_row * y.dilation * x.in + tap % in_row * x.dilation) *
        input_.channels);
  }
  const MicroKernel& kernel = gemm.kernel();
  const int64_t mr = kernel.mr;
  const int64_t residual = gemm.weights.residual_room();
  pointers_.resize(static_cast<size_t>((taps_ + residual) * mr));
  padding_.assign(static_cast<size_t>(tap_depth_), padding_value_);
  if (form_ == Form::kRows || form_ == Form::kCopies) {
    copies_.assign(static_cast<size_t>(taps_ * tap_depth_ * mr), 0);
  }
  if (kernel.activations == ActivationLayout::kIndirect) return;
  if (kernel.activations == ActivationLayout::kStrided) {
    if (form_ == Form::kMatrix) stride_ = input_.channels;
    if (gemm.RunsAtStride(kernel)) stride_ = x.stride * input_.channels;
  }
  PlanPacked(gemm, repeated);
}

void Int8IndirectionBuffer::PlanPacked(const Int8Gemm& gemm, int64_t repeated) {
  const int64_t residual = gemm.weights.residual_room();
  pack_ = gemm.kernel().pack;
  packed_stride_ = PackedStride(taps_ * tap_depth_ + residual * panel_.kr,
                                DepthUnit(panel_), gemm.kernel().packed_copies);
  place_bytes_ = packed_stride_ * gemm.kernel().mr;
  // A residual is found by pointers, and row sums are by row. Of rows that are
  // read where they lie, at most one tile is packed.
  keeps_ =
      repeated > 1 && residual == 0 && weights_zero_point_ == 0 && stride_ == 0;
  const int64_t places =
      keeps_ ? std::clamp<int64_t>(
                   kMostKept / std::max<int64_t>(place_bytes_, 1), 1, repeated)
             : 1;
  kept_.assign(static_cast<size_t>(places), -1);
  packed_.emplace(places * place_bytes_);
}

void Int8IndirectionBuffer::Fill(int64_t first, int rows, int64_t place) {
  if (pack_ != nullptr) {
    is_at_stride_ = LieAtStride(first, rows);
    const int64_t last = static_cast<int64_t>(kept_.size()) - 1;
    place = std::min(place, last);
    packed_tile_ = packed_->data() + place * place_bytes_;
    if (!is_at_stride_) {
      if (kept_[static_cast<size_t>(place)] == first) return;
      if (keeps_) kept_[static_cast<size_t>(place)] = first;
    }
  }
  if (form_ == Form::kMatrix) {
    const uint8_t* row = input_.values + first * input_.channels;
    for (int r = 0; r < rows; ++r, row += input_.channels) pointers_[r] = row;
  } else if (!FillRun(first, rows)) {
    is_at_stride_ = false;
    FindCorners(first, rows);
    for (int r = 0; r < rows; ++r) {
      if (form_ != Form::kCopies && FillInside(corners_[r], r, rows)) continue;
      if (form_ == Form::kPixels) {
        FillPixels(corners_[r], r, rows);
      } else if (form_ == Form::kRows) {
        FillRows(corners_[r], r, rows);
      } else {
        uint8_t* copy = copies_.data() + r * tap_depth_;
        CopyWindow(corners_[r], copy);
        pointers_[r] = copy;
      }
    }
  }
  if (weights_zero_point_ != 0) FindRowInit(first, rows);
  if (pack_ != nullptr && !is_at_stride_) PackRows(rows);
}

// Whether the tile's rows, and what fills up the depth of the last one, may be
// read where they lie. Those of a convolution may where they are one run.
bool Int8IndirectionBuffer::LieAtStride(int64_t first, int rows) const {
  if (stride_ == 0 || form_ == Form::kPixels) return stride_ > 0;
  return RoundUp(tap_depth_, DepthUnit(panel_)) <=
         end_ - input_.values - (first + rows - 1) * stride_;
}

void Int8IndirectionBuffer::PackRows(int rows) {
  Int8GemmTile tile;
  Describe(&tile);
  pack_(tile, rows, 0);
}

void Int8IndirectionBuffer::Describe(Int8GemmTile* tile) {
  tile->indirection = pointers_.data();
  tile->taps = taps_;
  tile->depth = tap_depth_;
  tile->residual_taps = 0;
  tile->row_init = row_init_;
  tile->has_row_init = weights_zero_point_ != 0;
  tile->packed = packed_tile_;
  tile->packed_stride = packed_stride_;
  tile->activation_stride = is_at_stride_ ? stride_ : 0;
}

void Int8IndirectionBuffer::AddResidual(absl::Span<const int32_t> groups,
                                        int rows, Int8GemmTile* tile) {
  const int64_t kr = panel_.kr, of_tap = tap_depth_ / kr;
  const auto count = static_cast<int64_t>(groups.size());
  if (count > 0 && is_at_stride_) {
    is_at_stride_ = false;
    tile->activation_stride = 0;
    PackRows(rows);
  }
  tile->residual_taps = count;
  const uint8_t** out = pointers_.data() + taps_ * rows;
  for (int32_t group : groups) {
    const uint8_t* const* pointers = pointers_.data() + group / of_tap * rows;
    const int64_t place = group % of_tap * kr;
    for (int r = 0; r < rows; ++r) *out++ = pointers[r] + place;
  }
  if (pack_ != nullptr && count > 0) pack_(*tile, rows, taps_);
}

// Where a tile lies within one row of the output and all its windows inside of
// the input, the pixels of a window are those of the one before, one step
// further.
bool Int8IndirectionBuffer::FillRun(int64_t first, int rows) {
  const WindowAxis& x = input_.window.x;
  if (form_ == Form::kCopies || first % x.out + rows > x.out) return false;
  FindCorners(first, 1);
  const int64_t step = x.stride * input_.channels;
  const Corner& begin = corners_[0];
  Corner last = begin;
  last.x += (rows - 1) * x.stride;
  if (!IsInside(begin) || !IsInside(last)) return false;
  const uint8_t* corner =
      begin.image + (begin.y * x.in + begin.x) * input_.channels;
  if (tap_depth_ > end_ - corner - offsets_[taps_ - 1] - (rows - 1) * step) {
    return false;
  }
  const uint8_t** out = pointers_.data();
  for (int64_t tap = 0; tap < taps_; ++tap, out += rows) {
    const uint8_t* pixel = corner + offsets_[tap];
    for (int r = 0; r < rows; ++r) out[r] = pixel + r * step;
  }
  return true;
}

// Divides once: rows follow one another.
void Int8IndirectionBuffer::FindCorners(int64_t first, int rows) {
  const WindowAxis &y = input_.window.y, &x = input_.window.x;
  const int64_t image_bytes = y.in * x.in * input_.channels;
  int64_t batch = first / (y.out * x.out);
  int64_t out_y = first / x.out % y.out;
  int64_t out_x = first % x.out;
  for (int r = 0; r < rows; ++r) {
    corners_[r] = {input_.values + batch * image_bytes,
                   out_y * y.stride - y.pad_before,
                   out_x * x.stride - x.pad_before};
    if (++out_x < x.out) continue;
    out_x = 0;
    if (++out_y < y.out) continue;
    out_y = 0;
    ++batch;
  }
}

bool Int8IndirectionBuffer::IsInside(const Corner& corner) const {
  const WindowAxis &y = input_.window.y, &x = input_.window.x;
  return corner.y >= 0 && corner.y + (y.size - 1) * y.dilation < y.in &&
         corner.x >= 0 && corner.x + (x.size - 1) * x.dilation < x.in;
}

// Most windows lie inside of the input.
bool Int8IndirectionBuffer::FillInside(const Corner& corner, int r, int rows) {
  if (!IsInside(corner)) return false;
  const uint8_t* first =
      corner.image +
      (corner.y * input_.window.x.in + corner.x) * input_.channels;
  // What fills up the last group must be there too.
  if (tap_depth_ > end_ - first - offsets_[taps_ - 1]) return false;
  const uint8_t** out = pointers_.data() + r;
  const int64_t* offset = offsets_.data();
  for (int64_t tap = 0; tap < taps_; ++tap, out += rows) {
    *out = first + offset[tap];
  }
  return true;
}

void Int8IndirectionBuffer::FillPixels(const Corner& corner, int r, int rows) {
  const WindowAxis &y = input_.window.y, &x = input_.window.x;
  const uint8_t** out = pointers_.data() + r;
  for (int64_t fy = 0; fy < y.size; ++fy) {
    const int64_t in_y = corner.y + fy * y.dilation;
    const bool is_row = in_y >= 0 && in_y < y.in;
    for (int64_t fx = 0; fx < x.size; ++fx) {
      const int64_t in_x = corner.x + fx * x.dilation;
      *out = is_row && in_x >= 0 && in_x < x.in
                 ? corner.image + (in_y * x.in + in_x) * input_.channels
                 : padding_.data();
      out += rows;
    }
  }
}

void Int8IndirectionBuffer::FillRows(const Corner& corner, int r, int rows) {
  const WindowAxis &y = input_.window.y, &x = input_.window.x;
  const bool is_whole = corner.x >= 0 && corner.x + x.size <= x.in;
  for (int64_t tap = 0; tap < taps_; ++tap) {
    const uint8_t*& out = pointers_[tap * rows + r];
    const int64_t in_y = corner.y + tap * y.dilation;
    if (in_y < 0 || in_y >= y.in) {
      out = padding_.data();
      continue;
    }
    const uint8_t* in_row = corner.image + in_y * x.in * input_.channels;
    const int64_t place = corner.x * input_.channels;
    // What fills up the last group must be there too.
    if (is_whole && tap_depth_ <= end_ - in_row - place) {
      out = in_row + place;
      continue;
    }
    uint8_t* copy = copies_.data() + (r * taps_ + tap) * tap_depth_;
    CopyRow(in_row, corner.x, copy);
    out = copy;
  }
}

// The window's pixels of one row of the input, from x on.
void Int8IndirectionBuffer::CopyRow(const uint8_t* row, int64_t x,
                                    uint8_t* to) const {
  const WindowAxis& axis = input_.window.x;
  const int64_t channels = input_.channels;
  // Pixels of one row lie together.
  if (axis.dilation == 1 && x >= 0 && x + axis.size <= axis.in) {
    return CopyValues(row + x * channels, axis.size * channels, to);
  }
  for (int64_t fx = 0; fx < axis.size; ++fx, to += channels) {
    const int64_t in_x = x + fx * axis.dilation;
    if (in_x >= 0 && in_x < axis.in) {
      CopyValues(row + in_x * channels, channels, to);
    } else {
      std::memset(to, padding_value_, static_cast<size_t>(channels));
    }
  }
}

void Int8IndirectionBuffer::CopyWindow(const Corner& corner,
                                       uint8_t* to) const {
  const WindowAxis &y = input_.window.y, &x = input_.window.x;
  const int64_t row_values = x.size * input_.channels;
  for (int64_t fy = 0; fy < y.size; ++fy, to += row_values) {
    const int64_t in_y = corner.y + fy * y.dilation;
    if (in_y >= 0 && in_y < y.in) {
      CopyRow(corner.image + in_y * x.in * input_.channels, corner.x, to);
    } else {
      std::memset(to, padding_value_, static_cast<size_t>(row_values));
    }
  }
}

// Corrects for the zero point of the weights.
void Int8IndirectionBuffer::FindRowInit(int64_t first, int rows) {
  for (int r = 0; r < rows; ++r) {
    const uint32_t sum = row_sums_ != nullptr
                             ? static_cast<uint32_t>(row_sums_[first + r])
                             : SumOfRow(r, rows);
    row_init_[r] =
        static_cast<int32_t>(-static_cast<uint32_t>(weights_zero_point_) * sum);
  }
}

uint32_t Int8IndirectionBuffer::SumOfRow(int r, int rows) const {
  uint32_t sum = 0;
  for (int64_t tap = 0; tap < taps_; ++tap) {
    sum += static_cast<uint32_t>(
        sum_values_(pointers_[tap * rows + r], tap_values_));
  }
  return sum;
}

}  // namespace optfarm::runtime
