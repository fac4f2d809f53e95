#include "engine/runtime/operators/int8_rows.h"

#include <algorithm>
#include <cstring>

namespace optfarm::runtime {
namespace {

// A few codes: most copies are of a dozen, for which memcpy's call takes longer
// than its work.
void CopyCodes(const uint8_t* from, int64_t count, uint8_t* to) {
  for (; count >= 8; count -= 8, from += 8, to += 8) std::memcpy(to, from, 8);
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

}  // namespace

Int8Rows::Form Int8Rows::FormOf(const Int8Product& product) {
  if (product.is_lined) return Form::kLines;
  if (product.image.channels % kInt8Group != 0) return Form::kCopies;
  return product.image.is_matrix() ? Form::kMatrix : Form::kPixels;
}

Int8Rows::Int8Rows(const Int8Product& product, const int32_t* row_sums)
    : image_(product.image),
      row_sums_(row_sums),
      sum_codes_(product.functions.stages->sum_codes),
      weights_zero_(product.weights.zero()),
      form_(FormOf(product)),
      end_(image_.codes + image_.batch * image_.window.y.in *
                              image_.window.x.in * image_.channels),
      padding_code_(static_cast<uint8_t>(std::clamp(image_.zero, 0, 255))) {
  const WindowAxis &y = image_.window.y, &x = image_.window.x;
  if (form_ == Form::kPixels) {
    taps_ = y.size * x.size;
  } else if (form_ == Form::kLines) {
    taps_ = y.size;
  }
  tap_codes_ = image_.depth() / taps_;
  tap_depth_ = product.weights.padded_depth() / taps_;
  for (int64_t tap = 0; tap < taps_; ++tap) {
    const int64_t in_line = form_ == Form::kPixels ? x.size : 1;
    offsets_.push_back(
        (tap / in_line * y.dilation * x.in + tap % in_line * x.dilation) *
        image_.channels);
  }
  pixels_.resize(
      static_cast<size_t>((taps_ + product.weights.rest_room()) * kInt8Rows));
  padding_.assign(static_cast<size_t>(tap_depth_), padding_code_);
  if (form_ == Form::kLines || form_ == Form::kCopies) {
    copies_.assign(static_cast<size_t>(taps_ * tap_depth_ * kInt8Rows), 0);
  }
}

void Int8Rows::Fill(int64_t first, int rows) {
  if (form_ == Form::kMatrix) {
    const uint8_t* row = image_.codes + first * image_.channels;
    for (int r = 0; r < rows; ++r, row += image_.channels) pixels_[r] = row;
  } else if (!PointAtRun(first, rows)) {
    FindCorners(first, rows);
    for (int r = 0; r < rows; ++r) {
      if (form_ != Form::kCopies && PointInside(corners_[r], r, rows)) continue;
      if (form_ == Form::kPixels) {
        PointAtPixels(corners_[r], r, rows);
      } else if (form_ == Form::kLines) {
        PointAtLines(corners_[r], r, rows);
      } else {
        uint8_t* copy = copies_.data() + r * tap_depth_;
        CopyWindow(corners_[r], copy);
        pixels_[r] = copy;
      }
    }
  }
  if (weights_zero_ != 0) FindRowStarts(first, rows);
}

void Int8Rows::Describe(Int8Tile* tile) const {
  tile->pixels = pixels_.data();
  tile->taps = taps_;
  tile->depth = tap_depth_;
  tile->row_start = row_start_;
  tile->has_row_start = weights_zero_ != 0;
}

int64_t Int8Rows::PointAtRest(absl::Span<const int32_t> groups, int rows) {
  const uint8_t** out = pixels_.data() + taps_ * rows;
  const int64_t of_tap = tap_depth_ / kInt8Group;
  for (int32_t group : groups) {
    const uint8_t* const* pixels = pixels_.data() + group / of_tap * rows;
    const int64_t place = group % of_tap * kInt8Group;
    for (int r = 0; r < rows; ++r) *out++ = pixels[r] + place;
  }
  return static_cast<int64_t>(groups.size());
}

// Where a tile lies within one line of the output and all its windows inside of
// the image, a row's pixels are those of the row before, one step further.
bool Int8Rows::PointAtRun(int64_t first, int rows) {
  const WindowAxis& x = image_.window.x;
  if (form_ == Form::kCopies || first % x.out + rows > x.out) return false;
  FindCorners(first, 1);
  const int64_t step = x.stride * image_.channels;
  const Corner& begin = corners_[0];
  Corner last = begin;
  last.x += (rows - 1) * x.stride;
  if (!IsInside(begin) || !IsInside(last)) return false;
  const uint8_t* corner =
      begin.image + (begin.y * x.in + begin.x) * image_.channels;
  if (tap_depth_ > end_ - corner - offsets_[taps_ - 1] - (rows - 1) * step) {
    return false;
  }
  const uint8_t** out = pixels_.data();
  for (int64_t tap = 0; tap < taps_; ++tap, out += rows) {
    const uint8_t* pixel = corner + offsets_[tap];
    for (int r = 0; r < rows; ++r) out[r] = pixel + r * step;
  }
  return true;
}

// Divides once: rows follow one another.
void Int8Rows::FindCorners(int64_t first, int rows) {
  const WindowAxis &y = image_.window.y, &x = image_.window.x;
  const int64_t image_bytes = y.in * x.in * image_.channels;
  int64_t batch = first / (y.out * x.out);
  int64_t out_y = first / x.out % y.out;
  int64_t out_x = first % x.out;
  for (int r = 0; r < rows; ++r) {
    corners_[r] = {image_.codes + batch * image_bytes,
                   out_y * y.stride - y.pad_before,
                   out_x * x.stride - x.pad_before};
    if (++out_x < x.out) continue;
    out_x = 0;
    if (++out_y < y.out) continue;
    out_y = 0;
    ++batch;
  }
}

bool Int8Rows::IsInside(const Corner& corner) const {
  const WindowAxis &y = image_.window.y, &x = image_.window.x;
  return corner.y >= 0 && corner.y + (y.size - 1) * y.dilation < y.in &&
         corner.x >= 0 && corner.x + (x.size - 1) * x.dilation < x.in;
}

// Most windows lie inside of the image.
bool Int8Rows::PointInside(const Corner& corner, int r, int rows) {
  if (!IsInside(corner)) return false;
  const uint8_t* first =
      corner.image +
      (corner.y * image_.window.x.in + corner.x) * image_.channels;
  // What fills up the last group must be there too.
  if (tap_depth_ > end_ - first - offsets_[taps_ - 1]) return false;
  const uint8_t** out = pixels_.data() + r;
  const int64_t* offset = offsets_.data();
  for (int64_t tap = 0; tap < taps_; ++tap, out += rows) {
    *out = first + offset[tap];
  }
  return true;
}

void Int8Rows::PointAtPixels(const Corner& corner, int r, int rows) {
  const WindowAxis &y = image_.window.y, &x = image_.window.x;
  const uint8_t** out = pixels_.data() + r;
  for (int64_t fy = 0; fy < y.size; ++fy) {
    const int64_t in_y = corner.y + fy * y.dilation;
    const bool is_row = in_y >= 0 && in_y < y.in;
    for (int64_t fx = 0; fx < x.size; ++fx) {
      const int64_t in_x = corner.x + fx * x.dilation;
      *out = is_row && in_x >= 0 && in_x < x.in
                 ? corner.image + (in_y * x.in + in_x) * image_.channels
                 : padding_.data();
      out += rows;
    }
  }
}

void Int8Rows::PointAtLines(const Corner& corner, int r, int rows) {
  const WindowAxis &y = image_.window.y, &x = image_.window.x;
  const bool is_whole = corner.x >= 0 && corner.x + x.size <= x.in;
  for (int64_t tap = 0; tap < taps_; ++tap) {
    const uint8_t*& out = pixels_[tap * rows + r];
    const int64_t in_y = corner.y + tap * y.dilation;
    if (in_y < 0 || in_y >= y.in) {
      out = padding_.data();
      continue;
    }
    const uint8_t* line = corner.image + in_y * x.in * image_.channels;
    const int64_t place = corner.x * image_.channels;
    // What fills up the last group must be there too.
    if (is_whole && tap_depth_ <= end_ - line - place) {
      out = line + place;
      continue;
    }
    uint8_t* copy = copies_.data() + (r * taps_ + tap) * tap_depth_;
    CopyLine(line, corner.x, copy);
    out = copy;
  }
}

// The window's pixels of one line of the image, from x on.
void Int8Rows::CopyLine(const uint8_t* line, int64_t x, uint8_t* to) const {
  const WindowAxis& axis = image_.window.x;
  const int64_t channels = image_.channels;
  // Pixels of one line lie together.
  if (axis.dilation == 1 && x >= 0 && x + axis.size <= axis.in) {
    return CopyCodes(line + x * channels, axis.size * channels, to);
  }
  for (int64_t fx = 0; fx < axis.size; ++fx, to += channels) {
    const int64_t in_x = x + fx * axis.dilation;
    if (in_x >= 0 && in_x < axis.in) {
      CopyCodes(line + in_x * channels, channels, to);
    } else {
      std::memset(to, padding_code_, static_cast<size_t>(channels));
    }
  }
}

void Int8Rows::CopyWindow(const Corner& corner, uint8_t* to) const {
  const WindowAxis &y = image_.window.y, &x = image_.window.x;
  const int64_t line_codes = x.size * image_.channels;
  for (int64_t fy = 0; fy < y.size; ++fy, to += line_codes) {
    const int64_t in_y = corner.y + fy * y.dilation;
    if (in_y >= 0 && in_y < y.in) {
      CopyLine(corner.image + in_y * x.in * image_.channels, corner.x, to);
    } else {
      std::memset(to, padding_code_, static_cast<size_t>(line_codes));
    }
  }
}

// What the weights' zero code takes off all sums of a row.
void Int8Rows::FindRowStarts(int64_t first, int rows) {
  for (int r = 0; r < rows; ++r) {
    const uint32_t sum = row_sums_ != nullptr
                             ? static_cast<uint32_t>(row_sums_[first + r])
                             : SumOfRow(r, rows);
    row_start_[r] =
        static_cast<int32_t>(-static_cast<uint32_t>(weights_zero_) * sum);
  }
}

uint32_t Int8Rows::SumOfRow(int r, int rows) const {
  uint32_t sum = 0;
  for (int64_t tap = 0; tap < taps_; ++tap) {
    sum +=
        static_cast<uint32_t>(sum_codes_(pixels_[tap * rows + r], tap_codes_));
  }
  return sum;
}

}  // namespace optfarm::runtime
