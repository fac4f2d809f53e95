// A ModelService in memory whose streams break when they are told to.

#ifndef OPTFARM_TESTS_RPC_FAKE_MODEL_SERVICE_H_
#define OPTFARM_TESTS_RPC_FAKE_MODEL_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/digest.h"
#include "optfarm/v1/models.grpc.pb.h"

namespace optfarm::rpc {

// THREADS: set fields only while no call is under way.
class FakeModelService final : public v1::ModelService::Service {
 public:
  // UNITS: bytes. A stream breaks with UNAVAILABLE after that many; 0: never.
  int64_t break_after = 0;
  // Flips a bit in what is sent down.
  bool corrupt = false;
  // Where downloads are sent that take an address; empty: nowhere.
  std::string url;
  // Answers uploads so.
  grpc::Status upload_status;
  // So many uploads find the server full.
  int full_uploads = 0;

  std::map<std::string, std::string> blobs;
  int uploads = 0;
  int downloads = 0;
  int queries = 0;

  grpc::Status FindMissing(grpc::ServerContext*,
                           const v1::FindMissingRequest* request,
                           v1::FindMissingResponse* response) override {
    absl::MutexLock lock(&mutex_);
    for (const v1::Digest& digest : request->digests()) {
      if (!blobs.contains(digest.sha256())) *response->add_missing() = digest;
    }
    return grpc::Status::OK;
  }

  grpc::Status QueryUpload(grpc::ServerContext*,
                           const v1::QueryUploadRequest* request,
                           v1::QueryUploadResponse* response) override {
    absl::MutexLock lock(&mutex_);
    ++queries;
    const std::string& sha256 = request->digest().sha256();
    response->set_complete(blobs.contains(sha256));
    response->set_committed_bytes(
        response->complete() ? request->digest().size_bytes()
                             : static_cast<int64_t>(staged_[sha256].size()));
    return grpc::Status::OK;
  }

  grpc::Status Upload(grpc::ServerContext*,
                      grpc::ServerReader<v1::UploadRequest>* reader,
                      v1::UploadResponse* response) override {
    absl::MutexLock lock(&mutex_);
    ++uploads;
    if (!upload_status.ok()) return upload_status;
    if (full_uploads > 0) {
      --full_uploads;
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, "the server: disk full"};
    }
    v1::UploadRequest request;
    v1::Digest digest;
    int64_t taken = 0;
    while (reader->Read(&request)) {
      if (request.has_digest()) digest = request.digest();
      std::string& staged = staged_[digest.sha256()];
      if (request.offset() != static_cast<int64_t>(staged.size())) {
        return {grpc::StatusCode::INVALID_ARGUMENT, "out of order"};
      }
      staged += request.data();
      taken += static_cast<int64_t>(request.data().size());
      if (break_after > 0 && taken >= break_after &&
          static_cast<int64_t>(staged.size()) < digest.size_bytes()) {
        return {grpc::StatusCode::UNAVAILABLE, "broken"};
      }
    }
    std::string& staged = staged_[digest.sha256()];
    if (static_cast<int64_t>(staged.size()) < digest.size_bytes()) {
      return {grpc::StatusCode::UNAVAILABLE, "ended early"};
    }
    if (Sha256Hex(staged) != digest.sha256()) {
      staged.clear();
      return {grpc::StatusCode::DATA_LOSS, "SHA-256 differs"};
    }
    response->set_committed_bytes(digest.size_bytes());
    blobs[digest.sha256()] = std::move(staged);
    return grpc::Status::OK;
  }

  grpc::Status Download(
      grpc::ServerContext*, const v1::DownloadRequest* request,
      grpc::ServerWriter<v1::DownloadResponse>* writer) override {
    absl::MutexLock lock(&mutex_);
    ++downloads;
    const auto found = blobs.find(request->digest().sha256());
    if (found == blobs.end()) {
      return {grpc::StatusCode::NOT_FOUND, "no such blob"};
    }
    const std::string& bytes = found->second;
    const auto size = static_cast<int64_t>(bytes.size());
    v1::DownloadResponse response;
    response.set_total_bytes(size);
    if (request->accepts_url() && !url.empty()) {
      response.set_url(url);
      writer->Write(response);
      return grpc::Status::OK;
    }
    int64_t sent = 0;
    int64_t offset = request->offset();
    do {
      response.set_offset(offset);
      response.set_data(bytes.substr(static_cast<size_t>(offset), 1000));
      const auto piece = static_cast<int64_t>(response.data().size());
      if (corrupt && piece > 0) (*response.mutable_data())[0] ^= 1;
      writer->Write(response);
      offset += piece;
      sent += piece;
      if (break_after > 0 && sent >= break_after && offset < size) {
        return {grpc::StatusCode::UNAVAILABLE, "broken"};
      }
    } while (offset < size);
    return grpc::Status::OK;
  }

 private:
  absl::Mutex mutex_;
  std::map<std::string, std::string> staged_;
};

// A service behind a real channel on a free port of this machine.
class LocalServer {
 public:
  explicit LocalServer(std::initializer_list<grpc::Service*> services) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    for (grpc::Service* service : services) builder.RegisterService(service);
    server_ = builder.BuildAndStart();
    channel_ =
        grpc::CreateChannel(target(), grpc::InsecureChannelCredentials());
  }
  ~LocalServer() { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace optfarm::rpc

#endif  // OPTFARM_TESTS_RPC_FAKE_MODEL_SERVICE_H_
