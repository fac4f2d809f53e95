#include "device_agent/machine_info.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "rpc/participant_flags.h"

namespace optfarm::device_agent {
namespace {

constexpr uint64_t kMaxBytes = 1 << 20;

// As x86 and Arm kernels spell them.
constexpr std::array<absl::string_view, 24> kFeatures = {
    "asimd",       "asimddp",  "asimdhp", "avx",      "avx2",     "avx512_bf16",
    "avx512_vnni", "avx512bw", "avx512f", "avx512vl", "avx_vnni", "bf16",
    "f16c",        "fma",      "fphp",    "i8mm",     "neon",     "sse4_1",
    "sse4_2",      "ssse3",    "sve",     "sve2",     "vfpv3",    "vfpv4"};

std::string ReadText(const std::string& path) {
  return ReadFile(path, kMaxBytes).value_or("");
}

// The first of `keys` that stands before a ':' in a line; its value.
absl::string_view Value(absl::string_view text,
                        std::initializer_list<absl::string_view> keys) {
  for (absl::string_view key : keys) {
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      const size_t colon = line.find(':');
      if (colon != absl::string_view::npos &&
          absl::StripAsciiWhitespace(line.substr(0, colon)) == key) {
        return absl::StripAsciiWhitespace(line.substr(colon + 1));
      }
    }
  }
  return "";
}

// A line of text from the first file that has one.
std::string FirstLine(std::initializer_list<std::string> paths) {
  for (const std::string& path : paths) {
    std::string text = ReadText(path);
    // The device tree's strings end with NUL.
    text = text.substr(0, text.find_first_of(std::string("\n\0", 2)));
    absl::StripAsciiWhitespace(&text);
    if (!text.empty()) return text;
  }
  return "";
}

int64_t MemoryBytes(absl::string_view meminfo) {
  int64_t kibibytes = 0;
  const absl::string_view value = Value(meminfo, {"MemTotal"});
  return absl::SimpleAtoi(absl::StripSuffix(value, " kB"), &kibibytes) &&
                 kibibytes > 0 && kibibytes < (int64_t{1} << 50)
             ? kibibytes * 1024
             : 0;
}

std::string OsName(absl::string_view os_release) {
  for (absl::string_view line : absl::StrSplit(os_release, '\n')) {
    if (absl::ConsumePrefix(&line, "PRETTY_NAME=")) {
      absl::ConsumePrefix(&line, "\"");
      absl::ConsumeSuffix(&line, "\"");
      return std::string(line);
    }
  }
  return "";
}

}  // namespace

std::string CpuModel(absl::string_view cpuinfo) {
  // Arm boards name the processor in other fields, if at all.
  return std::string(Value(
      cpuinfo, {"model name", "Model Name", "Hardware", "cpu model", "uarch"}));
}

std::vector<std::string> CpuFeatures(absl::string_view cpuinfo) {
  std::vector<std::string> features;
  for (absl::string_view word :
       absl::StrSplit(Value(cpuinfo, {"flags", "Features"}), ' ')) {
    if (std::find(kFeatures.begin(), kFeatures.end(), word) !=
        kFeatures.end()) {
      features.emplace_back(word);
    }
  }
  std::sort(features.begin(), features.end());
  features.erase(std::unique(features.begin(), features.end()), features.end());
  return features;
}

v1::DeviceInfo ReadMachineInfo(const std::string& root) {
  v1::DeviceInfo info;
  const std::string cpuinfo = ReadText(JoinPath(root, "proc/cpuinfo"));
  info.set_model(FirstLine({JoinPath(root, "proc/device-tree/model"),
                            JoinPath(root, "sys/class/dmi/id/product_name")}));
  if (info.model().empty())
    info.set_model(std::string(Value(cpuinfo, {"Model"})));
  info.set_cpu_model(CpuModel(cpuinfo));
  info.set_cores(rpc::UsableCores());
  for (std::string& feature : CpuFeatures(cpuinfo)) {
    info.add_cpu_features(std::move(feature));
  }
  info.set_memory_bytes(MemoryBytes(ReadText(JoinPath(root, "proc/meminfo"))));
  info.set_os(OsName(ReadText(JoinPath(root, "etc/os-release"))));
  struct utsname system = {};
  if (::uname(&system) == 0) {
    info.set_kernel(absl::StrCat(system.sysname, " ", system.release));
    info.set_architecture(system.machine);
  }
  return info;
}

std::optional<double> ReadTemperature(const std::string& root) {
  const std::string zones = JoinPath(root, "sys/class/thermal");
  std::optional<double> hottest;
  const auto names = ListFolder(zones);
  if (!names.ok()) return hottest;
  for (const std::string& name : *names) {
    int64_t milli = 0;
    if (!absl::StartsWith(name, "thermal_zone") ||
        !absl::SimpleAtoi(FirstLine({JoinPath(zones, name + "/temp")}),
                          &milli)) {
      continue;
    }
    const double celsius = static_cast<double>(milli) / 1000;
    if (!hottest || celsius > *hottest) hottest = celsius;
  }
  return hottest;
}

}  // namespace optfarm::device_agent
