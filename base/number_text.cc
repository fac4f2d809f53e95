#include "base/number_text.h"

#include <charconv>

#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"

namespace optfarm {
namespace {

// A sign, 17 digits, a point, four zeros before them, an exponent.
constexpr size_t kMostBytes = 32;

// How many digits name the number and no other.
template <typename Number>
int DigitsNeeded(Number value) {
  char text[kMostBytes];
  const char* end = std::to_chars(text, text + kMostBytes, value,
                                  std::chars_format::scientific)
                        .ptr;
  int digits = 0;
  for (const char* c = text; c != end && *c != 'e'; ++c) {
    if (*c >= '0' && *c <= '9') ++digits;
  }
  return digits;
}

void AppendTwoDigits(int number, std::string& out) {
  out.push_back(static_cast<char>('0' + number / 10));
  out.push_back(static_cast<char>('0' + number % 10));
}

}  // namespace

void AppendNumber(double value, int digits, std::string& out) {
  char text[kMostBytes];
  const char* end = std::to_chars(text, text + kMostBytes, value,
                                  std::chars_format::general, digits)
                        .ptr;
  out.append(text, static_cast<size_t>(end - text));
}

void AppendFixed(double value, int decimals, std::string& out) {
  char text[kMostBytes];
  const char* end = std::to_chars(text, text + kMostBytes, value,
                                  std::chars_format::fixed, decimals)
                        .ptr;
  out.append(text, static_cast<size_t>(end - text));
}

void AppendExactNumber(double value, std::string& out) {
  AppendNumber(value, DigitsNeeded(value) <= 15 ? 15 : 17, out);
}

void AppendExactNumber(float value, std::string& out) {
  AppendNumber(value, DigitsNeeded(value) <= 6 ? 6 : 9, out);
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
