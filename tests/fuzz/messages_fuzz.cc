// Every message that a client, a worker or an agent may send, into a real
// server on a temporary store. An input is a row of calls, each
//
//   method       one byte: which of all methods of all services
//   length       two bytes, little endian
//   request      as many bytes, sent as they are but for what would wait
//
// so that a seed submits a job, leases its task and reports on it. Where a
// request holds kJobId, the id of the newest job takes its place. The store
// lies in memory where the system has a folder there: what a disk takes to sync
// is no news.

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "base/files.h"
#include "base/log.h"
#include "optfarm/v1/devices.pb.h"
#include "optfarm/v1/farm.pb.h"
#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/models.pb.h"
#include "optfarm/v1/results.pb.h"
#include "optfarm/v1/servers.pb.h"
#include "optfarm/v1/store.pb.h"
#include "optfarm/v1/tokens.pb.h"
#include "optfarm/v1/tunes.pb.h"
#include "optfarm/v1/work.pb.h"
#include "server/server.h"
#include "tests/fuzz/server_fuzzer.h"

namespace optfarm {
namespace {

constexpr char kJobId[] = "j000000000000";
constexpr size_t kMostCalls = 20;
// Every call is done long before, also where everything is instrumented.
constexpr std::chrono::seconds kPatience(10);
// Then the next server begins with an empty store, so that lists stay short.
constexpr int kInputsOfAFarm = 1000;
constexpr char kMemory[] = "/dev/shm";

bool Parses(const google::protobuf::MethodDescriptor& method,
            const std::string& bytes) {
  const std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(method.input_type())
          ->New());
  return message->ParseFromString(bytes);
}

// The request with its waits cut short. On the wire the last value of a field
// counts, so that what is there stays as it is.
std::string Hurried(absl::string_view method, std::string request) {
  if (method == "WatchJob") {
    v1::WatchJobRequest end;
    end.set_no_follow(true);
    return request + end.SerializeAsString();
  }
  if (method == "QuerySql") {
    v1::QuerySqlRequest end;
    end.set_max_milliseconds(20);
    return request + end.SerializeAsString();
  }
  v1::SynchronizeRequest held;
  if (method != "Synchronize" || !held.ParseFromString(request) ||
      !held.has_long_poll()) {
    return request;
  }
  // A millisecond. Seconds of 0 have to be said.
  constexpr absl::string_view kLongPoll("\x08\x00\x10\xc0\x84\x3d", 6);
  constexpr char kTag = v1::SynchronizeRequest::kLongPollFieldNumber << 3 | 2;
  return absl::StrCat(request, absl::string_view(&kTag, 1),
                      std::string(1, static_cast<char>(kLongPoll.size())),
                      kLongPoll);
}

struct Farm {
  Farm() {
    SetUpLog("fuzz", LogLevel::kError);
    auto made =
        MakeTemporaryFolder("messages_fuzz", IsFolder(kMemory) ? kMemory : "");
    OPTFARM_CHECK(made.ok());
    folder = std::make_unique<ScopedFolder>(*made);
    server::ServerOptions options;
    options.data_dir = JoinPath(*made, "data");
    options.grpc_address = absl::StrCat("unix:", JoinPath(*made, "socket"));
    options.reserved_free_bytes = 0;
    options.max_blob_bytes = 1 << 20;
    options.grace = absl::ZeroDuration();
    options.scheduling.max_long_poll = absl::Milliseconds(50);
    auto started = server::Server::Start(options);
    OPTFARM_CHECK(started.ok());
    server = *std::move(started);
    stub = std::make_unique<grpc::GenericStub>(grpc::CreateChannel(
        server->address(), grpc::InsecureChannelCredentials()));
    for (const google::protobuf::FileDescriptor* file :
         {v1::UploadRequest::descriptor()->file(),
          v1::Job::descriptor()->file(),
          v1::SynchronizeRequest::descriptor()->file(),
          v1::Device::descriptor()->file(), v1::Result::descriptor()->file(),
          v1::BackupRequest::descriptor()->file(),
          v1::Token::descriptor()->file(), v1::Tune::descriptor()->file(),
          v1::Project::descriptor()->file(),
          v1::ServerState::descriptor()->file()}) {
      for (int i = 0; i < file->service(0)->method_count(); ++i) {
        // The first fills the disk, the second waits, and no input changes
        // how: their requests say next to nothing.
        const std::string& name = file->service(0)->method(i)->name();
        if (name == "Backup" || name == "WatchJobs") continue;
        methods.push_back(file->service(0)->method(i));
      }
    }
  }

  // Sends one message and reads all answers.
  void Call(uint8_t which, absl::string_view request) {
    const google::protobuf::MethodDescriptor& method =
        *methods[which % methods.size()];
    const std::string bytes = Hurried(
        method.name(), absl::StrReplaceAll(request, {{kJobId, newest_job}}));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    grpc::CompletionQueue queue;
    void* tag = nullptr;
    bool ok = false;
    auto stream = stub->PrepareCall(
        &context,
        absl::StrCat("/", method.service()->full_name(), "/", method.name()),
        &queue);
    stream->StartCall(nullptr);
    queue.Next(&tag, &ok);
    const grpc::Slice slice(bytes);
    stream->WriteLast(grpc::ByteBuffer(&slice, 1), {}, nullptr);
    queue.Next(&tag, &ok);
    std::string answer;
    while (true) {
      grpc::ByteBuffer buffer;
      stream->Read(&buffer, nullptr);
      queue.Next(&tag, &ok);
      if (!ok) break;
      grpc::Slice whole;
      if (buffer.DumpToSingleSlice(&whole).ok()) {
        answer.assign(reinterpret_cast<const char*>(whole.begin()),
                      whole.size());
      }
    }
    grpc::Status status;
    stream->Finish(&status, nullptr);
    queue.Next(&tag, &ok);
    // Ours to answer for, whatever was sent; gRPC itself says INTERNAL to what
    // is no message.
    OPTFARM_CHECK(status.error_code() != grpc::StatusCode::INTERNAL ||
                  !Parses(method, bytes));
    OPTFARM_CHECK(status.error_code() != grpc::StatusCode::UNAVAILABLE);
    OPTFARM_CHECK(status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED ||
                  method.name() == "QuerySql");
    v1::SubmitJobResponse submitted;
    if (status.ok() && method.name() == "SubmitJob" &&
        submitted.ParseFromString(answer)) {
      newest_job = submitted.job().job_id();
    }
  }

  std::unique_ptr<ScopedFolder> folder;
  std::unique_ptr<server::Server> server;
  std::unique_ptr<grpc::GenericStub> stub;
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  std::string newest_job = kJobId;
};

}  // namespace
}  // namespace optfarm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static std::unique_ptr<optfarm::Farm> farm;
  static int inputs = 0;
  if (inputs++ % optfarm::kInputsOfAFarm == 0) {
    // One after the other: a folder has one server.
    farm = nullptr;
    farm = std::make_unique<optfarm::Farm>();
  }
  absl::string_view input(reinterpret_cast<const char*>(data), size);
  for (size_t calls = 0; calls < optfarm::kMostCalls && input.size() >= 3;
       ++calls) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(input[i]); };
    const uint8_t method = byte(0);
    const size_t length = byte(1) + size_t{256} * byte(2);
    input.remove_prefix(3);
    farm->Call(method, input.substr(0, length));
    input.remove_prefix(std::min(length, input.size()));
  }
  return 0;
}
