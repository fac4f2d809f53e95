// A file's bytes as memory, without reading them all.

#ifndef OPTFARM_BASE_MAPPED_FILE_H_
#define OPTFARM_BASE_MAPPED_FILE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm {

// THREADS: may be read from any thread. A file that is cut short while it is
// mapped ends the process when the missing part is read; replacing it by
// renaming another over it is harmless.
class MappedFile {
 public:
  // ERRORS: ErrnoToStatus's, naming the file; FailedPrecondition for what is no
  // ordinary file.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(
      const std::string& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Begins at a page.
  absl::string_view bytes() const { return {data_, size_}; }

  // Lets the memory of all pages go; who reads them again has them again.
  void LetPagesGo() const;

 private:
  MappedFile(const char* data, size_t size) : data_(data), size_(size) {}

  const char* data_;
  size_t size_;
};

}  // namespace optfarm

#endif  // OPTFARM_BASE_MAPPED_FILE_H_
