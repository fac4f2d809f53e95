#include "client_cli/tables/array_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "engine/runtime/core/half.h"

namespace optfarm::client_cli {
namespace {

using runtime::Tensor;

// An element as text.
using Formatter = std::function<std::string(int64_t index)>;

// The edges of a large array, all of a small one: which of an axis's indices
// are shown. A gap stands where "..." is printed.
struct ShownIndices {
  std::vector<int64_t> before;
  std::vector<int64_t> after;
  bool has_gap = false;
};

ShownIndices ShownOf(int64_t size, bool summarize, int64_t edge) {
  ShownIndices shown;
  shown.has_gap = summarize && 2 * edge < size;
  const int64_t first = shown.has_gap ? edge : size;
  for (int64_t i = 0; i < first; ++i) shown.before.push_back(i);
  if (shown.has_gap) {
    for (int64_t i = size - edge; i < size; ++i) shown.after.push_back(i);
  }
  return shown;
}

// --- Floating-point numbers --------------------------------------------------

struct Decimal {
  std::string whole;     // With the sign.
  std::string fraction;  // Without zeros at the end.
  std::string exponent;  // "-05", empty for a plain number.
};

Decimal Split(std::string text) {
  Decimal decimal;
  const size_t e = text.find('e');
  if (e != std::string::npos) {
    decimal.exponent = text.substr(e + 1);
    text.resize(e);
  }
  const size_t point = text.find('.');
  decimal.whole = text.substr(0, point);
  if (point != std::string::npos) decimal.fraction = text.substr(point + 1);
  while (!decimal.fraction.empty() && decimal.fraction.back() == '0') {
    decimal.fraction.pop_back();
  }
  return decimal;
}

// The fewest digits that give the number back, or `precision` digits behind
// the point where that is fewer.
template <typename T>
Decimal ToDecimal(T value, bool exponent, int64_t precision) {
  char text[512];
  const std::chars_format format =
      exponent ? std::chars_format::scientific : std::chars_format::fixed;
  const auto end = std::to_chars(text, text + sizeof(text), value, format);
  Decimal decimal = Split(std::string(text, end.ptr));
  if (static_cast<int64_t>(decimal.fraction.size()) <= precision) {
    return decimal;
  }
  const auto rounded = std::to_chars(text, text + sizeof(text), value, format,
                                     static_cast<int>(precision));
  return Split(std::string(text, rounded.ptr));
}

// How all elements of one array are printed.
template <typename T>
class FloatFormatter {
 public:
  FloatFormatter(const std::vector<T>& shown, const ArrayTextOptions& options)
      : precision_(options.precision) {
    double largest = 0, smallest = 0;
    for (const T value : shown) {
      if (!std::isfinite(value) || value == 0) continue;
      const double size = std::abs(static_cast<double>(value));
      largest = std::max(largest, size);
      smallest = smallest == 0 ? size : std::min(smallest, size);
    }
    exponent_ =
        largest >= 1e8 || (!options.suppress && largest > 0 &&
                           (smallest < 1e-4 || largest / smallest > 1000));
    for (const T value : shown) {
      if (std::isfinite(value))
        Measure(ToDecimal(value, exponent_, precision_));
    }
    for (const T value : shown) {
      if (std::isfinite(value)) continue;
      const size_t behind = fraction_width_ + 1;
      const size_t length = value < 0 ? 4 : 3;
      whole_width_ = std::max(whole_width_, length - std::min(length, behind));
    }
  }

  std::string Format(T value) const {
    if (!std::isfinite(value)) {
      const char* name =
          std::isnan(value) ? "nan" : (value < 0 ? "-inf" : "inf");
      return absl::StrFormat("%*s", Width(), name);
    }
    const Decimal d = ToDecimal(value, exponent_, precision_);
    std::string text(whole_width_ - std::min(whole_width_, d.whole.size()),
                     ' ');
    absl::StrAppend(&text, d.whole, ".", d.fraction);
    const size_t missing = fraction_width_ - d.fraction.size();
    if (!exponent_) return text + std::string(missing, ' ');
    text += std::string(missing, '0');
    // The sign, then as many digits as the longest exponent has.
    absl::StrAppend(&text, "e", d.exponent.substr(0, 1),
                    std::string(exponent_width_ - d.exponent.size(), '0'),
                    d.exponent.substr(1));
    return text;
  }

 private:
  void Measure(const Decimal& d) {
    whole_width_ = std::max(whole_width_, d.whole.size());
    fraction_width_ = std::max(fraction_width_, d.fraction.size());
    exponent_width_ = std::max(exponent_width_, d.exponent.size());
  }
  int Width() const {
    return static_cast<int>(whole_width_ + 1 + fraction_width_ +
                            (exponent_ ? 1 + exponent_width_ : 0));
  }

  int64_t precision_;
  bool exponent_ = false;
  size_t whole_width_ = 0, fraction_width_ = 0, exponent_width_ = 0;
};

// --- The array ---------------------------------------------------------------

class ArrayPrinter {
 public:
  ArrayPrinter(const Tensor& array, const ArrayTextOptions& options)
      : array_(array),
        options_(options),
        summarize_(array.num_elements() > options.threshold) {}

  std::string Print() {
    if (array_.num_elements() == 0) return "[]";
    Collect(0, 0);
    const Formatter format = MakeFormatter();
    if (array_.rank() == 0) return format(0);
    return PrintAxis(format, 0, 0, " ", options_.linewidth);
  }

 private:
  // Indices of all elements that are shown.
  void Collect(int axis, int64_t at) {
    if (axis == array_.rank()) {
      shown_.push_back(at);
      return;
    }
    const ShownIndices indices =
        ShownOf(array_.dim(axis), summarize_, options_.edgeitems);
    for (const auto& part : {indices.before, indices.after}) {
      for (const int64_t i : part) Collect(axis + 1, at * array_.dim(axis) + i);
    }
  }

  Formatter MakeFormatter() const;
  template <typename T>
  Formatter Floats() const;
  template <typename T>
  Formatter Integers() const;
  // Elements padded to the longest one shown.
  Formatter Padded(const Formatter& plain) const;

  std::string PrintAxis(const Formatter& format, int axis, int64_t at,
                        const std::string& indent, int64_t width) const;

  const Tensor& array_;
  const ArrayTextOptions& options_;
  bool summarize_;
  std::vector<int64_t> shown_;
};

template <typename T>
Formatter ArrayPrinter::Floats() const {
  const T* data = array_.data<T>();
  std::vector<T> values;
  for (const int64_t i : shown_) values.push_back(data[i]);
  const FloatFormatter<T> formatter(values, options_);
  if (array_.rank() > 0) {
    return [=](int64_t i) { return formatter.Format(data[i]); };
  }
  // A scalar prints like a number of Python.
  return [=](int64_t) {
    const std::string text = formatter.Format(data[0]);
    return absl::EndsWith(text, ".") ? text + "0" : text;
  };
}

template <typename T>
Formatter ArrayPrinter::Integers() const {
  const T* data = array_.data<T>();
  // Unary plus: a small integer is no character.
  return Padded([=](int64_t i) { return absl::StrCat(+data[i]); });
}

Formatter ArrayPrinter::Padded(const Formatter& plain) const {
  size_t width = 0;
  for (const int64_t i : shown_) width = std::max(width, plain(i).size());
  if (array_.rank() == 0) width = 0;
  return [=](int64_t i) {
    return absl::StrFormat("%*s", static_cast<int>(width), plain(i));
  };
}

Formatter ArrayPrinter::MakeFormatter() const {
  switch (array_.dtype()) {
    case tensorflow::DT_FLOAT:
      return Floats<float>();
    case tensorflow::DT_DOUBLE:
      return Floats<double>();
    case tensorflow::DT_INT8:
    case tensorflow::DT_QINT8:
      return Integers<int8_t>();
    case tensorflow::DT_UINT8:
    case tensorflow::DT_QUINT8:
      return Integers<uint8_t>();
    case tensorflow::DT_INT16:
    case tensorflow::DT_QINT16:
      return Integers<int16_t>();
    case tensorflow::DT_UINT16:
    case tensorflow::DT_QUINT16:
      return Integers<uint16_t>();
    case tensorflow::DT_INT32:
    case tensorflow::DT_QINT32:
      return Integers<int32_t>();
    case tensorflow::DT_UINT32:
      return Integers<uint32_t>();
    case tensorflow::DT_INT64:
      return Integers<int64_t>();
    case tensorflow::DT_UINT64:
      return Integers<uint64_t>();
    case tensorflow::DT_BOOL:
      return Padded([this](int64_t i) {
        return std::string(array_.data<bool>()[i] ? "True" : "False");
      });
    case tensorflow::DT_STRING:
      return [this](int64_t i) {
        return absl::StrCat(
            "b'", absl::CHexEscape(array_.data<std::string>()[i]), "'");
      };
    default: {
      // Complex numbers: their bits.
      const auto size = runtime::ElementSize(array_.dtype());
      const auto* bytes = static_cast<const char*>(array_.raw());
      return [=](int64_t i) {
        return absl::StrCat("0x", absl::BytesToHexString(absl::string_view(
                                      bytes + i * size, size)));
      };
    }
  }
}

// Puts words on lines of a limited width.
class LineFiller {
 public:
  explicit LineFiller(const std::string& indent)
      : indent_(indent), line_(indent) {}

  void Add(const std::string& word, int64_t width) {
    const bool fits =
        static_cast<int64_t>(line_.size() + word.size()) <= width ||
        line_.size() <= indent_.size();
    if (!fits) {
      while (line_.back() == ' ') line_.pop_back();
      absl::StrAppend(&text_, line_, "\n");
      line_ = indent_;
    }
    line_ += word;
  }
  void Blank() { line_ += ' '; }
  std::string Text() const { return text_ + line_; }

 private:
  const std::string& indent_;
  std::string text_, line_;
};

std::string ArrayPrinter::PrintAxis(const Formatter& format, int axis,
                                    int64_t at, const std::string& indent,
                                    int64_t width) const {
  const ShownIndices shown =
      ShownOf(array_.dim(axis), summarize_, options_.edgeitems);
  std::vector<int64_t> indices = shown.before;
  constexpr int64_t kGap = -1;
  if (shown.has_gap) indices.push_back(kGap);
  indices.insert(indices.end(), shown.after.begin(), shown.after.end());
  const int64_t base = at * array_.dim(axis);
  std::string text;
  if (axis + 1 == array_.rank()) {
    LineFiller line(indent);
    for (size_t i = 0; i < indices.size(); ++i) {
      line.Add(indices[i] == kGap ? "..." : format(base + indices[i]),
               width - 1);
      if (i + 1 < indices.size()) line.Blank();
    }
    text = line.Text();
  } else {
    const std::string newlines(array_.rank() - axis - 1, '\n');
    for (size_t i = 0; i < indices.size(); ++i) {
      absl::StrAppend(&text, indent,
                      indices[i] == kGap
                          ? "..."
                          : PrintAxis(format, axis + 1, base + indices[i],
                                      absl::StrCat(indent, " "), width - 1),
                      i + 1 < indices.size() ? newlines : "");
    }
  }
  return absl::StrCat("[", text.substr(indent.size()), "]");
}

}  // namespace

absl::Status SetArrayTextOption(absl::string_view text,
                                ArrayTextOptions* options) {
  const std::pair<absl::string_view, absl::string_view> pair =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  const auto [key, value] = pair;
  if (key == "suppress") {
    if (absl::SimpleAtob(value, &options->suppress)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "': suppress is True or False"));
  }
  int64_t* number = key == "precision"   ? &options->precision
                    : key == "threshold" ? &options->threshold
                    : key == "edgeitems" ? &options->edgeitems
                    : key == "linewidth" ? &options->linewidth
                                         : nullptr;
  if (number == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text,
        "' is none of precision=, threshold=, edgeitems=, linewidth= and "
        "suppress="));
  }
  int64_t parsed = 0;
  const int64_t most = key == "precision" ? 100 : int64_t{1} << 40;
  if (!absl::SimpleAtoi(value, &parsed) || parsed < 0 || parsed > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "': a number from 0 to ", most, " is needed"));
  }
  *number = parsed;
  return absl::OkStatus();
}

std::string ArrayText(const Tensor& array, const ArrayTextOptions& options) {
  if (runtime::IsHalf(array.dtype())) {
    // Memory for a copy is all that can be missing.
    const absl::StatusOr<Tensor> wide = runtime::HalfAsFloat(array);
    return wide.ok() ? ArrayText(*wide, options)
                     : std::string(wide.status().message());
  }
  return ArrayPrinter(array, options).Print();
}

}  // namespace optfarm::client_cli
