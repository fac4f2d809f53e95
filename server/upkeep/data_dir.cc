#include "server/upkeep/data_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace optfarm::server {

absl::StatusOr<std::unique_ptr<DataDir>> DataDir::Open(
    const std::string& path) {
  const std::string doing =
      absl::StrCat("opening the data folder '", path, "'");
  const bool is_new = !Exists(path);
  OPTFARM_RETURN_IF_ERROR(Annotate(MakeFolders(path), doing));
  if (is_new && ::chmod(path.c_str(), 0700) != 0) {
    return ErrnoToStatus(errno, doing);
  }
  const std::string file = JoinPath(path, "lock");
  const int lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return ErrnoToStatus(errno, doing);
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(lock);
    if (error != EWOULDBLOCK) return ErrnoToStatus(error, doing);
    return absl::FailedPreconditionError(
        absl::StrCat(doing,
                     ": another optfarm-server uses it; stop that one, or give "
                     "this one its own --data_dir"));
  }
  return std::unique_ptr<DataDir>(new DataDir(path, lock));
}

DataDir::~DataDir() { ::close(lock_); }

std::string DataDir::database() const { return JoinPath(path_, "optfarm.db"); }

std::string DataDir::tokens() const { return JoinPath(path_, "tokens.db"); }
std::string DataDir::webhooks() const { return JoinPath(path_, "webhooks.db"); }
std::string DataDir::tunes() const { return JoinPath(path_, "tunes.db"); }
std::string DataDir::audit() const { return JoinPath(path_, "audit.db"); }

std::string DataDir::uptime() const { return JoinPath(path_, "uptime"); }
std::string DataDir::blobs() const { return JoinPath(path_, "blobs"); }

std::string DataDir::backups() const { return JoinPath(path_, "backups"); }

}  // namespace optfarm::server
