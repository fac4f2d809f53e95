// The folder a server keeps everything in:
//
//   DIR/lock          held by the one server that uses the folder
//   DIR/optfarm.db    metadata (SQLite; with -wal and -shm beside it)
//   DIR/tokens.db     see storage/token_store.h
//   DIR/webhooks.db   see storage/webhook_store.h
//   DIR/tunes.db      see storage/tune_store.h
//   DIR/blobs/        see storage/file_blob_store.h
//   DIR/s3/           see storage/s3/s3_blob_store.h

#ifndef OPTFARM_SERVER_UPKEEP_DATA_DIR_H_
#define OPTFARM_SERVER_UPKEEP_DATA_DIR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace optfarm::server {

// The exclusive use of a data folder.
// OWNERSHIP: given up when the object goes, or the process ends in any way.
class DataDir {
 public:
  // Makes the folder when absent, readable by its owner only.
  // ERRORS: FailedPrecondition when another server uses it; those of the file
  // system.
  static absl::StatusOr<std::unique_ptr<DataDir>> Open(const std::string& path);
  ~DataDir();
  DataDir(const DataDir&) = delete;
  DataDir& operator=(const DataDir&) = delete;

  const std::string& path() const { return path_; }
  std::string database() const;
  std::string tokens() const;
  std::string webhooks() const;
  std::string tunes() const;
  std::string audit() const;
  std::string blobs() const;
  // When the server was there.
  std::string uptime() const;
  // Made by whoever writes the first backup.
  std::string backups() const;

 private:
  DataDir(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  const std::string path_;
  const int lock_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_UPKEEP_DATA_DIR_H_
