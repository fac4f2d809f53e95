#include "device_agent/adb_output.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "device_agent/machine_info.h"

namespace optfarm::device_agent {
namespace {

constexpr size_t kMaxName = 64;
// Thermal status from which Android says that it slows down: MODERATE.
constexpr int kModerate = 2;

// "key: value" of one line; false when it is none.
bool Split(absl::string_view line, absl::string_view* key,
           absl::string_view* value) {
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos) return false;
  *key = absl::StripAsciiWhitespace(line.substr(0, colon));
  *value = absl::StripAsciiWhitespace(line.substr(colon + 1));
  return true;
}

void Hotter(double celsius, v1::DeviceHealth* health) {
  if (!(celsius > -50 && celsius < 200)) return;
  const auto milli = static_cast<int64_t>(std::lround(celsius * 1000));
  if (!health->has_temperature_mc() || milli > health->temperature_mc()) {
    health->set_temperature_mc(milli);
  }
}

}  // namespace

const char kDescribePhone[] =
    "getprop ro.product.model; getprop ro.product.cpu.abi; "
    "getprop ro.build.version.release; uname -r; uname -m; nproc; "
    "cat /proc/meminfo; cat /proc/cpuinfo";

std::vector<AdbDevice> ParseAdbDevices(absl::string_view text) {
  std::vector<AdbDevice> devices;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    // "* daemon started successfully" and the heading are no devices.
    if (absl::StartsWith(line, "*") || absl::StartsWith(line, "List of")) {
      continue;
    }
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.size() < 2) continue;
    AdbDevice& device = devices.emplace_back();
    device.serial = std::string(words[0]);
    device.state = std::string(words[1]);
    for (absl::string_view word : words) {
      if (absl::ConsumePrefix(&word, "model:")) {
        device.model = std::string(word);
      }
    }
  }
  return devices;
}

std::string NameOfSerial(absl::string_view serial) {
  std::string name;
  for (const char c : serial.substr(0, kMaxName)) {
    const bool fits = absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                      c == '.' || c == '_' || c == '-';
    name += fits ? c : '-';
  }
  const size_t first = name.find_first_not_of("._-");
  return first == std::string::npos ? "" : name.substr(first);
}

void ReadBattery(absl::string_view dumpsys, v1::DeviceHealth* health) {
  for (const absl::string_view line : absl::StrSplit(dumpsys, '\n')) {
    absl::string_view key;
    absl::string_view value;
    int number = 0;
    if (!Split(line, &key, &value)) continue;
    if (absl::EndsWith(key, " powered")) {
      if (value == "true") health->set_charging(true);
    } else if (!absl::SimpleAtoi(value, &number)) {
      continue;
    } else if (key == "level" && number >= 0 && number <= 100) {
      health->set_battery_percent(number);
    } else if (key == "temperature") {
      // Tenths of a degree.
      Hotter(number / 10.0, health);
    }
  }
}

void ReadThermal(absl::string_view dumpsys, v1::DeviceHealth* health) {
  for (const absl::string_view line : absl::StrSplit(dumpsys, '\n')) {
    absl::string_view key;
    absl::string_view value;
    int status = 0;
    if (Split(line, &key, &value) && key == "Thermal Status" &&
        absl::SimpleAtoi(value, &status)) {
      health->set_throttled(status >= kModerate);
    }
    // "Temperature{mValue=36.5, mType=3, mName=skin, mStatus=0}": types 0 to 3
    // are processors, graphics, battery and skin.
    const size_t at = line.find("mValue=");
    const size_t type = line.find("mType=");
    if (at == absl::string_view::npos || type == absl::string_view::npos ||
        type + 6 >= line.size() || line[type + 6] < '0' ||
        line[type + 6] > '3') {
      continue;
    }
    const absl::string_view rest = line.substr(at + 7);
    double celsius = 0;
    if (absl::SimpleAtod(rest.substr(0, rest.find(',')), &celsius)) {
      Hotter(celsius, health);
    }
  }
}

v1::DeviceInfo ParsePhone(absl::string_view text, std::string* abi) {
  v1::DeviceInfo info;
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  const auto line = [&](size_t i) {
    return i < lines.size() ? std::string(absl::StripAsciiWhitespace(lines[i]))
                            : std::string();
  };
  info.set_model(line(0));
  *abi = line(1);
  if (!line(2).empty()) info.set_os(absl::StrCat("Android ", line(2)));
  info.set_kernel(line(3));
  info.set_architecture(line(4));
  int cores = 0;
  if (absl::SimpleAtoi(line(5), &cores) && cores > 0 && cores < 1024) {
    info.set_cores(cores);
  }
  for (const absl::string_view entry : lines) {
    absl::string_view key;
    absl::string_view value;
    int64_t kibibytes = 0;
    if (Split(entry, &key, &value) && key == "MemTotal" &&
        absl::ConsumeSuffix(&value, " kB") &&
        absl::SimpleAtoi(value, &kibibytes) && kibibytes > 0 &&
        kibibytes < (int64_t{1} << 40)) {
      info.set_memory_bytes(kibibytes * 1024);
    }
  }
  info.set_cpu_model(CpuModel(text));
  for (std::string& feature : CpuFeatures(text)) {
    info.add_cpu_features(std::move(feature));
  }
  return info;
}

}  // namespace optfarm::device_agent
