#include "base/human_units.h"

#include <cmath>
#include <cstddef>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace optfarm {
namespace {

// Three digits that matter, never an exponent for the sizes that occur.
std::string ThreeDigits(double number) {
  const double size = std::fabs(number);
  if (size >= 99.95) return absl::StrFormat("%.0f", number);
  if (size >= 9.995) return absl::StrFormat("%.1f", number);
  return absl::StrFormat("%.2f", number);
}

std::string Scaled(double number, double step, const absl::string_view* units,
                   size_t count) {
  size_t unit = 0;
  while (unit + 1 < count && std::fabs(number) >= 0.9995 * step) {
    number /= step;
    ++unit;
  }
  return absl::StrCat(ThreeDigits(number), " ", units[unit]);
}

}  // namespace

std::string HumanBytes(int64_t bytes) {
  constexpr absl::string_view kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  if (bytes > -1000 && bytes < 1000) return absl::StrCat(bytes, " B");
  return Scaled(static_cast<double>(bytes), 1000, kUnits, std::size(kUnits));
}

std::string HumanMicroseconds(double microseconds) {
  constexpr absl::string_view kUnits[] = {"us", "ms", "s"};
  if (!std::isfinite(microseconds)) return "-";
  return Scaled(microseconds, 1000, kUnits, std::size(kUnits));
}

std::string HumanRatio(double ratio) {
  if (!std::isfinite(ratio)) return "-";
  return absl::StrCat(ThreeDigits(ratio), "x");
}

std::string HumanPercent(double percent) {
  if (!std::isfinite(percent)) return "-";
  return absl::StrFormat("%.1f%%", percent);
}

std::string HumanDuration(absl::Duration duration) {
  const double seconds = absl::ToDoubleSeconds(duration);
  if (!std::isfinite(seconds)) return "forever";
  if (seconds < 0.9995) return absl::StrFormat("%.0f ms", seconds * 1000);
  if (seconds < 59.5) return absl::StrFormat("%.3g s", seconds);
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) {
    return absl::StrFormat("%d min %02d s", whole / 60, whole % 60);
  }
  return absl::StrFormat("%d h %02d min", whole / 3600, whole % 3600 / 60);
}

std::string HumanTime(absl::Time time) {
  if (time <= absl::UnixEpoch()) return "";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::UTCTimeZone());
}

}  // namespace optfarm
