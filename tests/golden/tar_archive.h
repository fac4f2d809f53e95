// The files of a .tar.gz archive, read into memory: what a test needs of the
// POSIX ustar format and GNU's long names, and no more.

#ifndef OPTFARM_TESTS_GOLDEN_TAR_ARCHIVE_H_
#define OPTFARM_TESTS_GOLDEN_TAR_ARCHIVE_H_

#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace optfarm::testing {

inline absl::StatusOr<std::string> GunzipFile(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    return absl::NotFoundError(absl::StrCat("cannot open '", path, "'"));
  }
  std::string content;
  std::string buffer(1 << 20, '\0');
  int count = 0;
  while ((count = gzread(file, buffer.data(),
                         static_cast<unsigned>(buffer.size()))) > 0) {
    content.append(buffer, 0, static_cast<size_t>(count));
  }
  gzclose(file);
  if (count < 0) {
    return absl::DataLossError(absl::StrCat("'", path, "' is damaged"));
  }
  return content;
}

// Content by path. Folders, links and other entries are left out.
inline absl::StatusOr<std::map<std::string, std::string>> ReadTarGz(
    const std::string& path) {
  constexpr size_t kBlock = 512;
  absl::StatusOr<std::string> read = GunzipFile(path);
  if (!read.ok()) return read.status();
  const std::string& tar = *read;
  const auto text = [&](size_t at, size_t size) {
    return std::string(tar.data() + at, size).c_str() + std::string();
  };
  std::map<std::string, std::string> files;
  std::string long_name;
  for (size_t at = 0; at + kBlock <= tar.size() && tar[at] != '\0';) {
    const std::string prefix = text(at + 345, 155);
    std::string name = text(at, 100);
    if (!prefix.empty()) name = prefix + "/" + name;
    const size_t size = std::strtoull(text(at + 124, 12).c_str(), nullptr, 8);
    const char type = tar[at + 156];
    const size_t begin = at + kBlock;
    if (size > tar.size() - begin) {
      return absl::DataLossError(absl::StrCat("'", path, "' ends early"));
    }
    if (!long_name.empty()) name = std::exchange(long_name, "");
    if (type == 'L') {
      long_name = text(begin, size);
    } else if (type == '0' || type == '\0') {
      files.emplace(std::move(name), tar.substr(begin, size));
    }
    at = begin + (size + kBlock - 1) / kBlock * kBlock;
  }
  return files;
}

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_GOLDEN_TAR_ARCHIVE_H_
