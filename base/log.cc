#include "base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

#include "base/utf8.h"

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

bool IsC1Control(unsigned char byte) { return byte >= 0x80 && byte < 0xa0; }

// Text with its control characters written out: ASCII's, and C1's, which take
// two bytes in UTF-8. What is not UTF-8 may only be ASCII.
std::string WithoutControls(absl::string_view text) {
  const bool is_utf8 = IsUtf8(text);
  std::string line;
  line.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool begins_c1 = is_utf8 && byte == 0xc2 &&
                           IsC1Control(static_cast<unsigned char>(text[i + 1]));
    if (byte == '\n') {
      line.push_back(' ');
    } else if (begins_c1) {
      absl::StrAppend(&line, "\\u00",
                      absl::Hex(static_cast<unsigned char>(text[++i])));
    } else if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !is_utf8)) {
      absl::StrAppend(&line, "\\x", absl::Hex(byte, absl::kZeroPad2));
    } else {
      line.push_back(text[i]);
    }
  }
  return line;
}

}  // namespace

void SetUpLog(absl::string_view program, LogLevel lowest) {
  Logger()->set_level(ToSpdlog(lowest));
  Logger()->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      absl::StrCat("%Y-%m-%dT%H:%M:%S.%eZ %L ", program, ": %v"),
      spdlog::pattern_time_type::utc));
}

void LogLine(LogLevel level, absl::string_view text) {
  const std::string line = WithoutControls(text);
  Logger()->log(ToSpdlog(level), spdlog::string_view_t(line));
}

}  // namespace optfarm
