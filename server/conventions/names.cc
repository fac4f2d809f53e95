#include "server/conventions/names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace optfarm::server {
namespace {

absl::Status CheckCharacters(absl::string_view what, absl::string_view name,
                             size_t most) {
  const auto allowed = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  };
  if (!name.empty() && name.size() <= most &&
      absl::ascii_isalnum(static_cast<unsigned char>(name[0])) &&
      std::all_of(name.begin(), name.end(), allowed)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      what, " ", Quoted(name), " is not a name: use 1 to ", most,
      " letters, digits, '.', '_' and '-', a letter or digit first"));
}

}  // namespace

absl::Status CheckName(absl::string_view what, absl::string_view name) {
  return CheckCharacters(what, name, 64);
}

absl::Status CheckFileName(absl::string_view what, absl::string_view name) {
  return CheckCharacters(what, name, 128);
}

absl::Status CheckRelativePath(absl::string_view what, absl::string_view path) {
  bool good = !path.empty() && path.size() <= 1024 &&
              std::none_of(path.begin(), path.end(), [](unsigned char c) {
                return absl::ascii_iscntrl(c) || c == '\\';
              });
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    good = good && !part.empty() && part != "." && part != "..";
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " ", Quoted(path),
      " is not a relative path: use '/' between parts, no '.', '..' or '\\', "
      "at most 1024 bytes"));
}

std::string Quoted(absl::string_view value) {
  constexpr size_t kLongest = 120;
  return absl::StrCat("'", absl::CHexEscape(value.substr(0, kLongest)),
                      value.size() > kLongest ? "..." : "", "'");
}

}  // namespace optfarm::server
