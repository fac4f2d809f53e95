// A farm of one server or of three whose processes are killed at random while
// it works: every job that was acknowledged ends right, no result is there
// twice, none is missing.
//
// environment: OPTFARM_FARM_SECONDS  how long (scripts/farm_test: 300)
//              OPTFARM_FARM_JOBS     how many jobs
//              OPTFARM_FARM_SEED     what happens; when, the machine decides
//              OPTFARM_FARM_STOP_SECONDS  how long a program is stopped at most
//              OPTFARM_FARM_PAUSE_MS  longest time between two faults
//              OPTFARM_FARM_DISK_MB  a disk of this size of a single server's
//                                    own, filled now and then; needs root

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "optfarm/v1/results.grpc.pb.h"
#include "tests/integration/farm.h"
#include "tests/integration/phones.h"
#include "tests/integration/postgres_place.h"
#include "tests/support/s3_server.h"

namespace optfarm::integration {
namespace {

// What is tried again until the server is back gives up after this.
constexpr absl::Duration kLongPatience = absl::Minutes(15);

int FromEnvironment(const char* name, int fallback) {
  const char* text = std::getenv(name);
  int value = fallback;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : fallback;
}

// A model below the test data, and a recipe that needs no samples.
struct ModelCase {
  const char* path;
  const char* recipe;
};

constexpr ModelCase kModels[] = {
    {"models/mobilenet_v1_0.25_128/frozen_graph.pb", "fp32"},
    {"models/tf2onnx_fc/frozen.pb", "weights8"},
    {"models/dotnet_cifar_model/frozen_model.pb", "fp32"},
    {"models/mnist_softmax/mnist.pb", "fp16-weights"},
    {"models/fakequant_mnist_edgetpu/frozen_model.pb", "fp32"},
    {"models/charrnn_lstm/frozen_model_mobile.pb", "fp32"},
    {"models/squeezenet_160_aiy/squeezenet_160res_5x5_0.75.pb", "fp32"},
    {"models/mobilenet_v1_0.25_128/frozen_graph.pb", "fp16-weights"},
};

// A user with a connection of its own, who tries again until it works.
class Client {
 public:
  explicit Client(const std::string& address) {
    rpc::ChannelOptions options;
    options.target = address;
    const auto channel = rpc::MakeChannel(options).value();
    models_ = v1::ModelService::NewStub(channel);
    jobs_ = v1::JobService::NewStub(channel);
    devices_ = v1::DeviceService::NewStub(channel);
    results_ = v1::ResultService::NewStub(channel);
  }

  // Calls until the answer is OK; the pause leaves the server alone.
  template <typename Call>
  static void Insist(const Call& call) {
    const absl::Time deadline = absl::Now() + kLongPatience;
    absl::Status status = call();
    while (!status.ok() && absl::Now() < deadline) {
      // The latter from a server whose disk is full for a while.
      ASSERT_TRUE(rpc::IsTransient(status) || absl::IsResourceExhausted(status))
          << status;
      absl::SleepFor(absl::Milliseconds(100));
      status = call();
    }
    ASSERT_TRUE(status.ok()) << status;
  }
  template <typename Stub, typename Request, typename Response>
  static Response Ask(const Stub& stub,
                      grpc::Status (Stub::element_type::*method)(
                          grpc::ClientContext*, const Request&, Response*),
                      const Request& request) {
    Response response;
    Insist([&] {
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
      return rpc::FromGrpc(((*stub).*method)(&context, request, &response));
    });
    return response;
  }

  v1::NamedBlob Upload(const std::string& path) {
    v1::NamedBlob blob;
    blob.set_name(BaseName(path));
    Insist([&] {
      const auto digest = rpc::UploadFile(models_.get(), path);
      if (digest.ok()) *blob.mutable_digest() = *digest;
      return digest.status();
    });
    return blob;
  }
  // One request id: however often it is sent, there is one job.
  std::string Submit(const v1::JobSpec& spec) {
    v1::SubmitJobRequest request;
    request.set_client_request_id(absl::StrCat("request-", ++submitted_));
    *request.mutable_spec() = spec;
    return Ask(jobs_, &v1::JobService::Stub::SubmitJob, request).job().job_id();
  }
  v1::Job Get(const std::string& job_id) {
    v1::GetJobRequest request;
    request.set_job_id(job_id);
    return Ask(jobs_, &v1::JobService::Stub::GetJob, request);
  }
  int CountJobs() {
    v1::ListJobsRequest request;
    request.set_page_size(1000);
    return Ask(jobs_, &v1::JobService::Stub::ListJobs, request).jobs_size();
  }
  std::vector<v1::Result> Results(const std::string& job_id) {
    v1::QueryResultsRequest request;
    request.set_job_id(job_id);
    request.set_page_size(1000);
    const v1::QueryResultsResponse response =
        Ask(results_, &v1::ResultService::Stub::QueryResults, request);
    EXPECT_TRUE(response.next_page_token().empty());
    return {response.results().begin(), response.results().end()};
  }
  // As an operator who trusts the devices: what was done to them was not their
  // fault. Returns how many were in quarantine.
  int EndQuarantines() {
    int ended = 0;
    const auto devices = Ask(devices_, &v1::DeviceService::Stub::ListDevices,
                             v1::ListDevicesRequest());
    for (const v1::Device& device : devices.devices()) {
      if (device.state() != v1::Device::QUARANTINED) continue;
      v1::ChangeDeviceRequest request;
      request.set_name(device.info().name());
      request.set_change(v1::ChangeDeviceRequest::ENABLE);
      Ask(devices_, &v1::DeviceService::Stub::ChangeDevice, request);
      ++ended;
    }
    return ended;
  }
  // Checks the bytes against the digest on the way.
  absl::Status Download(const v1::Digest& digest, const std::string& path) {
    return rpc::DownloadBlob(models_.get(), digest, path);
  }

 private:
  std::unique_ptr<v1::ModelService::Stub> models_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::DeviceService::Stub> devices_;
  std::unique_ptr<v1::ResultService::Stub> results_;
  int submitted_ = 0;
};

// A small disk for the server's data, where that was asked for.
class SmallDisk {
 public:
  SmallDisk() {
    const int size_mb = FromEnvironment("OPTFARM_FARM_DISK_MB", 0);
    if (size_mb == 0) return;
    folder_ = testing::FreshFolder();
    EXPECT_TRUE(MakeFolders(folder_).ok());
    if (::mount("tmpfs", folder_.c_str(), "tmpfs", 0,
                absl::StrCat("size=", size_mb, "m").c_str()) != 0) {
      ADD_FAILURE() << "mounting a small disk needs root";
      folder_.clear();
    }
  }
  ~SmallDisk() {
    if (is_there()) ::umount2(folder_.c_str(), MNT_DETACH);
  }

  bool is_there() const { return !folder_.empty(); }
  std::string data_dir() const {
    return is_there() ? JoinPath(folder_, "data") : "";
  }
  // Until Free there is no byte left.
  void Fill() const {
    const int fd =
        ::open(ballast().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const std::string block(1 << 16, 'x');
    for (size_t bytes = block.size(); bytes > 0;) {
      if (::write(fd, block.data(), bytes) < 0) bytes /= 2;
    }
    ::close(fd);
  }
  void Free() const { ::unlink(ballast().c_str()); }

 private:
  std::string ballast() const { return JoinPath(folder_, "ballast"); }
  std::string folder_;
};

class KilledFarmTest : public PostgresPlace {
 protected:
  void SetUp() override {
    disk_.emplace();
    // A full disk is full to the last byte.
    StartFarm({"--reserved_free_bytes=0"}, disk_->data_dir(), 1);
    farm_->LayWires();
    StartParticipants();
  }
  void TearDown() override {
    running_.clear();
    farm_.reset();
    PostgresPlace::TearDown();
  }

  void StartFarm(std::vector<std::string> server_flags,
                 const std::string& data_dir, size_t servers) {
    farm_.emplace(std::move(server_flags), data_dir, servers);
    client_.emplace(farm_->address());
  }
  void StartParticipants() {
    const std::string agent = testing::ProgramPath("optfarm-agent");
    const std::string worker = testing::ProgramPath("optfarm-worker");
    commands_ = {{"w1", {worker}},
                 {"w2", {worker}},
                 {"near", {agent}},
                 {"far", {agent}},
                 {"lab", phones_.AgentFlags()}};
    commands_["lab"].insert(commands_["lab"].begin(), agent);
    devices_ = {"near", "far", "alpha", "beta", "gamma"};
    if (arm_.is_there()) {
      commands_["pi"] = arm_.Command();
      devices_.push_back("pi");
    }
    for (const auto& [name, command] : commands_) Start(name);
    for (const std::string& device : devices_) {
      EXPECT_TRUE(Await([&] {
        return farm_->Device(device).state() == v1::Device::AVAILABLE;
      })) << device;
    }
  }

  void Start(const std::string& name) {
    running_[name] = farm_->StartParticipant(name, commands_[name],
                                             /*await_ready=*/false);
  }
  int Draw(int below) {
    return std::uniform_int_distribution<int>(0, below - 1)(random_);
  }
  void Say(const std::string& what) { ++counts_[what]; }

  void SubmitJobs(int count, absl::Duration span);
  void Disturb();
  size_t DrawServer();
  std::string Role(size_t number) const;
  void KillServer();
  void KillParticipant();
  void KillTask();
  void DisturbPhone();
  void KillAdb();
  // Ends and begins the stop of a program, which may last while others happen.
  void Stop();
  void Continue();
  void CutWire();
  void FillDisk();
  void CrashDatabase();
  void Heal();
  void ExpectRight(const std::string& job_id);
  void ExpectEveryJobRightAndOnce();

  const ArmAgent arm_ = FindArmAgent();
  const Phones phones_ = Phones({"alpha", "beta", "gamma"});
  // Of a single server.
  std::optional<SmallDisk> disk_;
  std::optional<Farm> farm_;
  std::optional<Client> client_;
  std::map<std::string, std::vector<std::string>> commands_;
  std::map<std::string, std::unique_ptr<Program>> running_;
  std::vector<std::string> devices_;
  std::vector<std::string> job_ids_;
  // Equal work, equal bytes: by model, recipe and name of the file.
  std::map<std::string, std::string> digests_;
  std::map<std::string, int> counts_;
  // Process id of the program that is suspended; 0: none.
  pid_t stopped_ = 0;
  absl::Time continue_at_;
  std::mt19937_64 random_{
      static_cast<uint64_t>(FromEnvironment("OPTFARM_FARM_SEED", 1))};
};

void KilledFarmTest::SubmitJobs(int count, absl::Duration span) {
  std::vector<v1::JobSpec> specs = {farm_->DigitsJob("int8"),
                                    farm_->DigitsJob("weights8")};
  std::thread user([&, count, span, specs]() mutable {
    Client client(farm_->address());
    for (const ModelCase& model : kModels) {
      const std::string path = testing::TestDataPath(model.path);
      if (path.empty()) continue;
      v1::JobSpec& spec = specs.emplace_back();
      *spec.mutable_model() = client.Upload(path);
      spec.set_recipe_name(model.recipe);
      spec.set_no_cache(true);
    }
    for (int i = 0; i < count; ++i) {
      v1::JobSpec spec = specs[static_cast<size_t>(i) % specs.size()];
      v1::BenchmarkSpec& benchmark = *spec.mutable_benchmark();
      const size_t first = static_cast<size_t>(i);
      benchmark.add_devices(devices_[first % devices_.size()]);
      benchmark.add_devices(devices_[(first + 1) % devices_.size()]);
      benchmark.add_threads(1);
      benchmark.set_min_runs(20);
      benchmark.mutable_min_time()->set_nanos(1'000'000);
      benchmark.mutable_max_time()->set_seconds(5);
      spec.set_max_attempts(20);
      job_ids_.push_back(client.Submit(spec));
      absl::SleepFor(span / count);
    }
  });
  const absl::Time end = absl::Now() + span;
  while (absl::Now() < end) {
    Disturb();
    absl::SleepFor(absl::Milliseconds(
        Draw(FromEnvironment("OPTFARM_FARM_PAUSE_MS", 2000))));
  }
  Heal();
  user.join();
}

void KilledFarmTest::Disturb() {
  if (stopped_ != 0 && absl::Now() > continue_at_) Continue();
  const bool has_database = !database_.empty();
  const bool has_disk = disk_ && disk_->is_there();
  switch (Draw(has_disk || has_database ? 12 : 11)) {
    case 0:
      return KillServer();
    case 1:
    case 2:
    case 3:
      return KillParticipant();
    case 4:
    case 5:
      return KillTask();
    case 8:
      return Stop();
    case 9:
      return CutWire();
    case 10:
      return KillAdb();
    case 11:
      return has_disk ? FillDisk() : CrashDatabase();
    default:
      return DisturbPhone();
  }
}

void KilledFarmTest::Stop() {
  if (stopped_ != 0) return;
  const int which = Draw(static_cast<int>(running_.size() + farm_->servers()));
  if (static_cast<size_t>(which) < farm_->servers()) {
    const size_t number = DrawServer();
    stopped_ = farm_->server(number).pid();
    Say(Role(number) + " suspended");
  } else {
    auto victim = running_.begin();
    std::advance(victim, which - static_cast<int>(farm_->servers()));
    stopped_ = victim->second->pid();
    Say("participant suspended");
  }
  ::kill(stopped_, SIGSTOP);
  continue_at_ =
      absl::Now() +
      absl::Seconds(1 + Draw(FromEnvironment("OPTFARM_FARM_STOP_SECONDS", 2)));
}

void KilledFarmTest::Continue() {
  if (stopped_ != 0) ::kill(std::exchange(stopped_, 0), SIGCONT);
}

void KilledFarmTest::CutWire() {
  Say("connections cut");
  for (int cuts = 1 + Draw(3); cuts > 0; --cuts) {
    farm_->CutWire(
        static_cast<size_t>(Draw(static_cast<int>(farm_->servers()))));
    absl::SleepFor(absl::Milliseconds(Draw(300)));
  }
}

void KilledFarmTest::FillDisk() {
  Say("disk full");
  disk_->Fill();
  absl::SleepFor(absl::Milliseconds(500 + Draw(2500)));
  disk_->Free();
}

void KilledFarmTest::CrashDatabase() {
  Say("database killed");
  EXPECT_EQ(Cluster("crash " + folder_), 0) << said_;
  absl::SleepFor(absl::Milliseconds(Draw(3000)));
  EXPECT_EQ(Cluster("start " + folder_), 0) << said_;
}

void KilledFarmTest::KillAdb() {
  const std::vector<std::string> pids = ListFolder("/proc").value();
  for (const std::string& pid : pids) {
    pid_t number = 0;
    const auto command = ReadFile(absl::StrCat("/proc/", pid, "/cmdline"));
    const auto environment = ReadFile(absl::StrCat("/proc/", pid, "/environ"));
    // Of this farm's phones, not of another test's.
    if (absl::SimpleAtoi(pid, &number) && command.ok() && environment.ok() &&
        absl::StrContains(*command, "fake_adb.py") &&
        !absl::StrContains(*command, "--adb=") &&
        absl::StrContains(*environment, std::getenv("FAKE_ADB_PHONES"))) {
      Say("adb killed");
      ::kill(number, SIGKILL);
      return;
    }
  }
}

// Most often the one that leads.
size_t KilledFarmTest::DrawServer() {
  if (farm_->servers() == 1 || Draw(3) > 0) return farm_->Leader();
  return static_cast<size_t>(Draw(static_cast<int>(farm_->servers())));
}

std::string KilledFarmTest::Role(size_t number) const {
  return number == farm_->Leader() ? "server" : "server that stood by";
}

void KilledFarmTest::KillServer() {
  const size_t number = DrawServer();
  // Others may stay suspended where there is a server that goes on.
  if (farm_->servers() == 1 || farm_->server(number).pid() == stopped_) {
    Continue();
  }
  const std::string role = Role(number);
  if (Draw(3) == 0) {
    Say(role + " stopped");
    EXPECT_EQ(farm_->server(number).Terminate().exit_code, 0);
  } else {
    Say(role + " killed");
    farm_->server(number).Kill9();
  }
  absl::SleepFor(absl::Milliseconds(Draw(2000)));
  farm_->StartServer(number);
}

void KilledFarmTest::KillParticipant() {
  Continue();
  auto victim = running_.begin();
  std::advance(victim, Draw(static_cast<int>(running_.size())));
  if (Draw(3) == 0) {
    Say("participant stopped");
    victim->second->Terminate();
  } else {
    Say("participant killed");
    victim->second->Kill9();
  }
  absl::SleepFor(absl::Milliseconds(Draw(500)));
  Start(victim->first);
}

void KilledFarmTest::KillTask() {
  for (const auto& [name, program] : running_) {
    const pid_t task = program->TaskProcess();
    if (task == 0 || Draw(2) == 0) continue;
    Say("task killed");
    ::kill(task, Draw(2) == 0 ? SIGKILL : SIGSEGV);
    return;
  }
}

void KilledFarmTest::DisturbPhone() {
  static constexpr const char* kFaults[] = {"crash_run 1\n", "reboot_run 1\n",
                                            "lose_result 1\n", "full 1\n"};
  const char* const serials[] = {"alpha", "beta", "gamma"};
  const std::string serial = serials[Draw(3)];
  const std::string unplugged = phones_.Path(serial + "/unplugged");
  if (Exists(unplugged)) {
    EXPECT_TRUE(RemoveAll(unplugged).ok());
  } else if (Draw(3) == 0) {
    Say("phone unplugged");
    phones_.Write(serial, "unplugged", "");
  } else {
    Say("phone's fault");
    phones_.Write(serial, "faults", kFaults[Draw(4)]);
  }
}

void KilledFarmTest::Heal() {
  Continue();
  for (const std::string serial : {"alpha", "beta", "gamma"}) {
    for (const char* const file : {"/unplugged", "/faults"}) {
      EXPECT_TRUE(RemoveAll(phones_.Path(serial + file)).ok());
    }
  }
}

void KilledFarmTest::ExpectRight(const std::string& job_id) {
  const v1::Job job = client_->Get(job_id);
  SCOPED_TRACE(absl::StrCat(job_id, " ", job.spec().model().name(), " ",
                            job.spec().recipe().name()));
  EXPECT_EQ(job.state(), v1::SUCCEEDED) << job.failure().DebugString();
  EXPECT_EQ(job.tasks_size(), 3);
  // Each device measures original and result once.
  using Key = std::pair<std::string, std::string>;
  std::map<Key, int> wanted, in_job, in_store;
  for (const std::string& device : job.spec().benchmark().devices()) {
    wanted[{device, "float"}] = 1;
    wanted[{device, job.spec().recipe().name()}] = 1;
  }
  for (const v1::Measurement& m : job.measurements()) {
    ++in_job[{m.device(), m.variant()}];
    EXPECT_TRUE(!m.has_numeric_check() || m.numeric_check().passed())
        << m.device() << ": " << m.numeric_check().message();
  }
  for (const v1::Result& result : client_->Results(job_id)) {
    ++in_store[{result.measurement().device(), result.measurement().variant()}];
  }
  EXPECT_EQ(in_job, wanted);
  EXPECT_EQ(in_store, wanted);
  std::set<std::string> names;
  for (const v1::Artifact& artifact : job.artifacts()) {
    EXPECT_TRUE(names.insert(artifact.name()).second) << artifact.name();
    if (artifact.name() != "optimized.pb") continue;
    const std::string sha256 = artifact.digest().sha256();
    const std::string& first =
        digests_
            .try_emplace(job.spec().model().digest().sha256() +
                             job.spec().recipe().name(),
                         sha256)
            .first->second;
    EXPECT_EQ(sha256, first);
    const std::string path = JoinPath(farm_->folder(), "downloaded");
    EXPECT_TRUE(client_->Download(artifact.digest(), path).ok());
  }
  EXPECT_TRUE(names.contains("optimized.pb"));
}

void KilledFarmTest::ExpectEveryJobRightAndOnce() {
  const int seconds = FromEnvironment("OPTFARM_FARM_SECONDS", 10);
  const int jobs = FromEnvironment("OPTFARM_FARM_JOBS", 5);
  SubmitJobs(jobs, absl::Seconds(seconds));
  if (HasFatalFailure()) return;
  const absl::Time deadline = absl::Now() + kLongPatience;
  int quarantines = 0;
  for (const std::string& job_id : job_ids_) {
    while (client_->Get(job_id).state() < v1::SUCCEEDED) {
      ASSERT_LT(absl::Now(), deadline) << client_->Get(job_id).DebugString();
      quarantines += client_->EndQuarantines();
      absl::SleepFor(absl::Milliseconds(200));
    }
  }
  EXPECT_EQ(client_->CountJobs(), jobs);
  for (const std::string& job_id : job_ids_) ExpectRight(job_id);
  int faults = 0;
  for (const auto& [what, count] : counts_) {
    std::cout << what << ": " << count << "\n";
    faults += count;
  }
  std::cout << "all together: " << faults << "\n";
  std::cout << "quarantines ended: " << quarantines << "\n"
            << "jobs: " << job_ids_.size() << "\n";
}

TEST_F(KilledFarmTest, EveryJobEndsRightAndOnce) {
  ExpectEveryJobRightAndOnce();
}

// Three servers on PostgreSQL and an S3 store; most faults of servers are of
// the one that leads.
class KilledServersFarmTest : public KilledFarmTest {
 protected:
  static constexpr size_t kServers = 3;

  void SetUp() override {
    PostgresPlace::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const auto s3 = testing::S3Server::Shared();
    if (absl::IsFailedPrecondition(s3.status())) {
      GTEST_SKIP() << s3.status().message();
    }
    ASSERT_TRUE(s3.ok()) << s3.status();
    const std::string keys = JoinPath(logs_, "keys");
    ASSERT_TRUE(
        WriteFileAtomically(
            keys, absl::StrCat(
                      "[default]\naws_access_key_id = ", (*s3)->access_key(),
                      "\naws_secret_access_key = ", (*s3)->secret_key(), "\n"))
            .ok());
    StartFarm(
        {database_,
         absl::StrCat("--blobs=s3://", testing::S3Server::kBucket, "/killed"),
         "--s3_endpoint=" + (*s3)->endpoint(), "--s3_region=" + (*s3)->region(),
         "--s3_path_style", "--s3_credentials_file=" + keys},
        /*data_dir=*/"", kServers);
    StartParticipants();
  }
};

TEST_F(KilledServersFarmTest, EveryJobEndsRightAndOnce) {
  ExpectEveryJobRightAndOnce();
}

}  // namespace
}  // namespace optfarm::integration
