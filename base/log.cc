#include "base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <string>

namespace optfarm {
namespace {

std::shared_ptr<spdlog::logger>& Logger() {
  static auto* const logger = [] {
    auto* made =
        new std::shared_ptr<spdlog::logger>(std::make_shared<spdlog::logger>(
            "", std::make_shared<spdlog::sinks::stderr_sink_mt>()));
    (*made)->set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "%Y-%m-%dT%H:%M:%S.%eZ %L %v", spdlog::pattern_time_type::utc));
    (*made)->flush_on(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void SetUpLog(absl::string_view program, LogLevel lowest) {
  Logger()->set_level(ToSpdlog(lowest));
  Logger()->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      absl::StrCat("%Y-%m-%dT%H:%M:%S.%eZ %L ", program, ": %v"),
      spdlog::pattern_time_type::utc));
}

void LogLine(LogLevel level, absl::string_view text) {
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  Logger()->log(ToSpdlog(level), spdlog::string_view_t(line));
}

}  // namespace optfarm
