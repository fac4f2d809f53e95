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

// Sets two characters to a number below 100.
void SetDigits(int number, char* text) {
  text[0] = static_cast<char>('0' + number / 10);
  text[1] = static_cast<char>('0' + number % 10);
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
  char text[] = "0000-00-00T00:00:00";
  SetDigits(year / 100, text);
  SetDigits(year % 100, text + 2);
  SetDigits(second.month(), text + 5);
  SetDigits(second.day(), text + 8);
  SetDigits(second.hour(), text + 11);
  SetDigits(second.minute(), text + 14);
  SetDigits(second.second(), text + 17);
  out.append(text, sizeof(text) - 1);
}

}  // namespace optfarm
