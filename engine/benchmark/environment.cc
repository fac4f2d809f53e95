#include "engine/benchmark/environment.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "engine/runtime/ukernels/cpu_features.h"

namespace optfarm::benchmark {
namespace {

constexpr int kMaxCpus = 1024;
constexpr int kMaxThermalZones = 64;

// Files below /proc and /sys have no size in advance: read what comes.
std::string ReadAll(const std::string& path) {
  std::string text;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return text;
  char buffer[4096];
  while (text.size() < (1 << 20)) {
    const size_t count = std::fread(buffer, 1, sizeof(buffer), file);
    if (count == 0) break;
    text.append(buffer, count);
  }
  std::fclose(file);
  return text;
}

std::string ReadLine(const std::string& path) {
  return std::string(absl::StripAsciiWhitespace(ReadAll(path)));
}

std::optional<int64_t> ReadNumber(const std::string& path) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(ReadLine(path), &value)) return std::nullopt;
  return value;
}

// Value of the first "key : value" line, for a file such as /proc/cpuinfo.
std::string ColonField(absl::string_view text, absl::string_view key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos) continue;
    if (absl::StripAsciiWhitespace(line.substr(0, colon)) == key) {
      return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    }
  }
  return "";
}

std::string OsName(const std::string& root) {
  for (absl::string_view line :
       absl::StrSplit(ReadAll(root + "/etc/os-release"), '\n')) {
    if (absl::ConsumePrefix(&line, "PRETTY_NAME=")) {
      return std::string(
          absl::StripPrefix(absl::StripSuffix(line, "\""), "\""));
    }
  }
  return "";
}

void ReadFrequencies(const std::string& root, v1::Environment* environment) {
  const std::string cpus = root + "/sys/devices/system/cpu/cpu";
  environment->set_governor(ReadLine(cpus + "0/cpufreq/scaling_governor"));
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    const auto khz =
        ReadNumber(absl::StrCat(cpus, cpu, "/cpufreq/scaling_cur_freq"));
    if (!khz.has_value()) break;
    environment->add_cpu_freq_khz(*khz);
  }
  if (environment->cpu_freq_khz_size() > 0) return;
  // Without cpufreq, x86 kernels still tell here.
  for (absl::string_view line :
       absl::StrSplit(ReadAll(root + "/proc/cpuinfo"), '\n')) {
    double mhz = 0;
    if (absl::StartsWith(line, "cpu MHz") &&
        absl::SimpleAtod(ColonField(line, "cpu MHz"), &mhz)) {
      environment->add_cpu_freq_khz(static_cast<int64_t>(mhz * 1000));
    }
  }
}

void ReadTemperature(const std::string& root, v1::Environment* environment) {
  for (int zone = 0; zone < kMaxThermalZones; ++zone) {
    const auto value = ReadNumber(
        absl::StrCat(root, "/sys/class/thermal/thermal_zone", zone, "/temp"));
    if (!value.has_value()) continue;
    if (!environment->has_temperature_mc() ||
        *value > environment->temperature_mc()) {
      environment->set_temperature_mc(*value);
    }
  }
}

// Batteries and mains adapters tell in a folder each.
void ReadPower(const std::string& root, v1::Environment* environment) {
  const std::string supplies = root + "/sys/class/power_supply";
  const auto names = ListFolder(supplies);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string supply = JoinPath(supplies, name);
    if (ReadLine(supply + "/type") == "Battery") {
      const auto percent = ReadNumber(supply + "/capacity");
      if (percent.has_value()) {
        environment->set_battery_percent(static_cast<int32_t>(*percent));
      }
      const std::string status = ReadLine(supply + "/status");
      if (status == "Charging" || status == "Full") {
        environment->set_charging(true);
      }
    } else if (ReadNumber(supply + "/online").value_or(0) > 0) {
      environment->set_charging(true);
    }
  }
}

// Boards with a firmware that throttles (Raspberry Pi) say so here, as bits:
// 0..3 now, 16..19 since boot.
bool ReadThrottled(const std::string& root) {
  const std::string text =
      ReadLine(root + "/sys/devices/platform/soc/soc:firmware/get_throttled");
  uint32_t bits = 0;
  return absl::SimpleHexAtoi(text, &bits) && (bits & 0x4) != 0;
}

}  // namespace

std::string CpuModelOf(absl::string_view cpuinfo) {
  for (const char* key : {"model name", "Model", "Hardware"}) {
    std::string value = ColonField(cpuinfo, key);
    if (!value.empty()) return value;
  }
  return "";
}

std::vector<std::string> CpuFeaturesOf(absl::string_view cpuinfo) {
  constexpr absl::string_view kKnown[] = {
      "sse4_1",  "sse4_2",   "avx",         "f16c",     "fma",      "avx2",
      "avx512f", "avx512bw", "avx512_vnni", "avx_vnni", "amx_int8", "neon",
      "asimd",   "asimdhp",  "asimddp",     "i8mm",     "sve",      "sve2"};
  std::string flags = ColonField(cpuinfo, "flags");
  if (flags.empty()) flags = ColonField(cpuinfo, "Features");
  const std::vector<std::string> have = absl::StrSplit(flags, ' ');
  std::vector<std::string> features;
  for (const absl::string_view known : kKnown) {
    if (std::find(have.begin(), have.end(), known) != have.end()) {
      features.emplace_back(known);
    }
  }
  return features;
}

std::optional<int64_t> KilobytesField(absl::string_view text,
                                      absl::string_view field) {
  absl::string_view value;
  const std::string found = ColonField(text, field);
  value = found;
  int64_t kilobytes = 0;
  if (!absl::ConsumeSuffix(&value, " kB") ||
      !absl::SimpleAtoi(value, &kilobytes)) {
    return std::nullopt;
  }
  return kilobytes * 1024;
}

v1::Environment ReadEnvironment(absl::string_view build_version,
                                const std::string& root) {
  v1::Environment environment;
  const std::string cpuinfo = ReadAll(root + "/proc/cpuinfo");
  environment.set_cpu_model(CpuModelOf(cpuinfo));
  environment.set_cores(UsableCores());
  for (std::string& feature : CpuFeaturesOf(cpuinfo)) {
    environment.add_cpu_features(std::move(feature));
  }
  environment.set_kernels(runtime::ToString(runtime::UsedCpuFeatures()));
  ReadFrequencies(root, &environment);
  ReadTemperature(root, &environment);
  double load = 0;
  const std::string loads = ReadAll(root + "/proc/loadavg");
  if (absl::SimpleAtod(loads.substr(0, loads.find(' ')), &load)) {
    environment.set_load_average(load);
  }
  const std::string memory = ReadAll(root + "/proc/meminfo");
  environment.set_memory_total_bytes(
      KilobytesField(memory, "MemTotal").value_or(0));
  environment.set_memory_available_bytes(
      KilobytesField(memory, "MemAvailable").value_or(0));
  environment.set_os(OsName(root));
  utsname names;
  if (uname(&names) == 0) {
    environment.set_kernel(
        absl::StrCat(names.sysname, " ", names.release, " ", names.machine));
  }
  environment.set_build_version(std::string(build_version));
  environment.set_throttled(ReadThrottled(root));
  ReadPower(root, &environment);
  return environment;
}

int UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int count =
      sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::max(count, 1);
}

int64_t PeakResidentBytes() {
  return KilobytesField(ReadAll("/proc/self/status"), "VmHWM").value_or(0);
}

int64_t ResidentBytes() {
  return KilobytesField(ReadAll("/proc/self/status"), "VmRSS").value_or(0);
}

bool ResetPeakResident() {
  // Open for good: a process in a sandbox may not open it again.
  static const int fd = ::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  return fd >= 0 && ::write(fd, "5", 1) == 1;
}

}  // namespace optfarm::benchmark
