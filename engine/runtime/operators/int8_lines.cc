#include "engine/runtime/operators/int8_lines.h"

#include <algorithm>
#include <cstring>

namespace optfarm::runtime {
namespace {

constexpr int64_t kNothing = -1;

// Places for lines: those from the first under a window to the last.
int64_t PlacesFor(const WindowAxis& y) {
  return std::min((y.size - 1) * y.dilation + 1, y.in);
}

}  // namespace

// Behind the places is a line of padding.
Int8Lines::Int8Lines(const Int8Product& product)
    : image_(product.image),
      functions_(*product.functions.stages),
      padding_code_(static_cast<uint8_t>(std::clamp(image_.zero, 0, 255))),
      step_(image_.window.x.stride * image_.channels),
      tap_groups_(product.weights.padded_depth() / image_.window.y.size /
                  kInt8Group),
      line_bytes_((image_.window.x.out - 1) * step_ + tap_groups_ * kInt8Group),
      held_(static_cast<size_t>(PlacesFor(image_.window.y)), kNothing),
      lines_((PlacesFor(image_.window.y) + 1) * line_bytes_),
      taps_(static_cast<size_t>(image_.window.y.size)) {
  std::memset(lines_.data() + PlacesFor(image_.window.y) * line_bytes_,
              padding_code_, static_cast<size_t>(line_bytes_));
}

void Int8Lines::Lay(int64_t line) {
  const WindowAxis& y = image_.window.y;
  const int64_t first = line % y.out * y.stride - y.pad_before;
  for (int64_t tap = 0; tap < y.size; ++tap) {
    taps_[tap] = LineAt(line / y.out, first + tap * y.dilation);
  }
}

Int8Lines::Bytes Int8Lines::After(int64_t line) const {
  const WindowAxis& y = image_.window.y;
  const int64_t reach = (y.size - 1) * y.dilation + 1;
  const int64_t first = line % y.out * y.stride - y.pad_before + reach;
  const int64_t begin = std::clamp<int64_t>(first, 0, y.in);
  const int64_t end = std::clamp<int64_t>(first + y.stride, begin, y.in);
  const int64_t codes = image_.window.x.in * image_.channels;
  const int64_t place = (line / y.out * y.in + begin) * codes;
  const int64_t count = (end - begin) * codes;
  if (image_.floats == nullptr) return {image_.codes + place, count};
  constexpr int64_t kWide = sizeof(float);
  return {image_.floats + place, count * kWide};
}

const uint8_t* Int8Lines::GroupOf(int64_t group) const {
  return taps_[group / tap_groups_] + group % tap_groups_ * kInt8Group;
}

const uint8_t* Int8Lines::LineAt(int64_t image, int64_t y) {
  const int64_t height = image_.window.y.in;
  const auto places = static_cast<int64_t>(held_.size());
  if (y < 0 || y >= height) return lines_.data() + places * line_bytes_;
  const int64_t place = y % places;
  const int64_t line = image * height + y;
  uint8_t* laid = lines_.data() + place * line_bytes_;
  if (held_[place] != line) LayLine(line, laid);
  held_[place] = line;
  return laid;
}

// No window reads what may lie behind the last one's codes, and its weights are
// zero for what fills up the last group.
void Int8Lines::LayLine(int64_t line, uint8_t* to) const {
  const WindowAxis& x = image_.window.x;
  const int64_t all = x.in * image_.channels;
  const int64_t before = std::min(x.pad_before * image_.channels, line_bytes_);
  const int64_t count = std::min(all, line_bytes_ - before);
  std::memset(to, padding_code_, static_cast<size_t>(before));
  if (image_.floats != nullptr) {
    functions_.codes_of_floats(*image_.quantize, image_.floats + line * all,
                               count, to + before);
  } else {
    std::memcpy(to + before, image_.codes + line * all,
                static_cast<size_t>(count));
  }
  std::memset(to + before + count, padding_code_,
              static_cast<size_t>(line_bytes_ - before - count));
}

}  // namespace optfarm::runtime
