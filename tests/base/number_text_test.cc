// Numbers and times are written as printf and absl write them.

#include "base/number_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace optfarm {
namespace {

std::string Printed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*g", digits, value);
  return text;
}

std::string Exact(auto value) {
  std::string text;
  AppendExactNumber(value, text);
  return text;
}

// Usual ones, and all that bits can say.
std::vector<double> Numbers() {
  std::vector<double> numbers = {0,      -0.0, 1,      0.1,    1e15,  1e16,
                                 5e-324, 1e-5, 0.0001, 999999, 2.5e9, 1.7e308};
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    const uint64_t bits = random();
    double number;
    std::memcpy(&number, &bits, sizeof(number));
    if (std::isfinite(number)) numbers.push_back(number);
    numbers.push_back(static_cast<double>(bits % 1'000'000'000) / 1000);
    numbers.push_back(static_cast<double>(static_cast<float>(bits)) / 1e12);
  }
  return numbers;
}

TEST(NumberTextTest, DigitsAreThoseOfPrintf) {
  for (const double number : Numbers()) {
    for (const int digits : {1, 3, 6, 9, 15, 17}) {
      std::string text = "x";
      AppendNumber(number, digits, text);
      EXPECT_EQ(text, "x" + Printed(number, digits));
    }
  }
}

TEST(NumberTextTest, DecimalsAreThoseOfPrintf) {
  for (const double number : Numbers()) {
    if (std::abs(number) >= 1e15) continue;
    for (const int decimals : {0, 1, 6}) {
      std::string text = "x";
      AppendFixed(number, decimals, text);
      char printed[64];
      std::snprintf(printed, sizeof(printed), "x%.*f", decimals, number);
      EXPECT_EQ(text, printed);
    }
  }
}

TEST(NumberTextTest, ExactNumbersAreReadAsTheSameWithNoMoreDigitsThanNeeded) {
  for (const double number : Numbers()) {
    const std::string few = Printed(number, 15);
    EXPECT_EQ(Exact(number), std::strtod(few.c_str(), nullptr) == number
                                 ? few
                                 : Printed(number, 17));
    const float narrow = static_cast<float>(number);
    if (!std::isfinite(narrow)) continue;
    const std::string six = Printed(narrow, 6);
    EXPECT_EQ(Exact(narrow), std::strtof(six.c_str(), nullptr) == narrow
                                 ? six
                                 : Printed(narrow, 9));
  }
}

TEST(NumberTextTest, TimesAreThoseOfAbsl) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    // Years 1 to 9999, with parts of seconds.
    const absl::Time time =
        absl::FromUnixSeconds(-62135596800) +
        absl::Seconds(static_cast<int64_t>(random() % 315537897600)) +
        absl::Nanoseconds(static_cast<int64_t>(random() % 1'000'000'000));
    std::string text = "x";
    AppendUtcTime(time, text);
    EXPECT_EQ(text, absl::FormatTime("x%E4Y-%m-%dT%H:%M:%S", time,
                                     absl::UTCTimeZone()));
  }
  std::string text;
  AppendUtcTime(absl::InfiniteFuture(), text);
  EXPECT_EQ(text, "infinite-future");
}

}  // namespace
}  // namespace optfarm
