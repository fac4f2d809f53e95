#include "base/number_text.h"

#include <charconv>

#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"

namespace optfarm {
namespace {

// A sign, 17 digits, a point, four zeros before them, an exponent.
constexpr size_t kMostBytes = 32;

struct Digits {
  Digits(double value, int digits)
      : size(static_cast<size_t>(std::to_chars(text, text + kMostBytes, value,
                                               std::chars_format::general,
                                               digits)
                                     .ptr -
                                 text)) {}

  template <typename Number>
  bool Says(Number value) const {
    Number read = 0;
    std::from_chars(text, text + size, read);
    return read == value;
  }

  char text[kMostBytes];
  size_t size;
};

template <typename Number>
void AppendExact(Number value, int few, int many, std::string& out) {
  const Digits digits(value, few);
  if (digits.Says(value)) {
    out.append(digits.text, digits.size);
  } else {
    AppendNumber(value, many, out);
  }
}

void AppendTwoDigits(int number, std::string& out) {
  out.push_back(static_cast<char>('0' + number / 10));
  out.push_back(static_cast<char>('0' + number % 10));
}

}  // namespace

void AppendNumber(double value, int digits, std::string& out) {
  const Digits text(value, digits);
  out.append(text.text, text.size);
}

void AppendFixed(double value, int decimals, std::string& out) {
  char text[kMostBytes];
  const char* end = std::to_chars(text, text + kMostBytes, value,
                                  std::chars_format::fixed, decimals)
                        .ptr;
  out.append(text, static_cast<size_t>(end - text));
}

void AppendExactNumber(double value, std::string& out) {
  AppendExact(value, 15, 17, out);
}

void AppendExactNumber(float value, std::string& out) {
  AppendExact(value, 6, 9, out);
}

void AppendUtcTime(absl::Time time, std::string& out) {
  const absl::CivilSecond second =
      absl::ToCivilSecond(time, absl::UTCTimeZone());
  if (second.year() < 0 || second.year() > 9999) {
    out.append(
        absl::FormatTime("%Y-%m-%dT%H:%M:%S", time, absl::UTCTimeZone()));
    return;
  }
  const int year = static_cast<int>(second.year());
  AppendTwoDigits(year / 100, out);
  AppendTwoDigits(year % 100, out);
  out.push_back('-');
  AppendTwoDigits(second.month(), out);
  out.push_back('-');
  AppendTwoDigits(second.day(), out);
  out.push_back('T');
  AppendTwoDigits(second.hour(), out);
  out.push_back(':');
  AppendTwoDigits(second.minute(), out);
  out.push_back(':');
  AppendTwoDigits(second.second(), out);
}

}  // namespace optfarm
