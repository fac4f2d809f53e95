// The driver for phones that hang on this machine. A thread of its own asks adb
// for them, because adb may take its time; tasks run in child processes, one a
// phone.

#include <algorithm>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "device_agent/adb_client.h"
#include "device_agent/adb_output.h"
#include "device_agent/device_driver.h"
#include "device_agent/phone.h"
#include "device_agent/quiet_gate.h"
#include "rpc/proto_time.h"

namespace optfarm::device_agent {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(2);
// Asking a phone how it is keeps it awake.
constexpr absl::Duration kAskEvery = absl::Seconds(30);
constexpr absl::Duration kAdbLimit = absl::Seconds(15);
// Loading, warming up and profiling beside the measured time.
constexpr absl::Duration kSlack = absl::Minutes(3);

// What adb's words for a state mean to whoever stands beside the phone.
std::string Explain(const std::string& state) {
  if (state == "unauthorized") {
    return "unauthorized; accept this computer's key on the phone";
  }
  if (state == "offline") return "offline; adb gets no answer, replug it";
  if (state == "no") return "no permissions; see that udev rules let adb in";
  return absl::StrCat("in state ", state);
}

struct KnownPhone {
  std::string serial;
  v1::DeviceStatus status;
  std::string abi;
  absl::Time asked = absl::InfinitePast();
};

// Whether the farm would notice a difference; temperatures alone can wait.
bool SameStates(const std::map<std::string, KnownPhone>& a,
                const std::map<std::string, KnownPhone>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
        const v1::DeviceStatus& s = x.second.status;
        const v1::DeviceStatus& t = y.second.status;
        return x.first == y.first && s.ready() == t.ready() &&
               s.reason() == t.reason() && s.disabled() == t.disabled();
      });
}

class AdbDriver final : public DeviceDriver {
 public:
  AdbDriver(Flags flags, AdbClient adb)
      : flags_(std::move(flags)), adb_(std::move(adb)) {
    if (flags_.serial.empty()) watcher_ = std::thread([this] { Watch(); });
  }
  ~AdbDriver() override {
    if (!watcher_.joinable()) return;
    stop_.Notify();
    watcher_.join();
  }

  std::vector<v1::DeviceStatus> Devices(
      const std::set<std::string>& busy) override {
    absl::MutexLock lock(&mutex_);
    busy_ = busy;
    std::vector<v1::DeviceStatus> statuses;
    for (const auto& [name, phone] : phones_) {
      v1::DeviceStatus status = phone.status;
      if (busy.contains(name)) status.set_ready(false);
      statuses.push_back(std::move(status));
    }
    return statuses;
  }

  void SetWaker(std::function<void()> wake) override {
    absl::MutexLock lock(&wake_mutex_);
    wake_ = std::move(wake);
  }

  std::vector<std::string> ChildFlags(const std::string& device) override {
    absl::MutexLock lock(&mutex_);
    std::vector<std::string> flags = {
        "--driver=adb", absl::StrCat("--adb=", adb_.program()),
        absl::StrCat("--phone_programs=", flags_.phone_programs),
        absl::StrCat("--serial=", phones_[device].serial)};
    if (flags_.fixed_performance) flags.push_back("--fixed_performance");
    return flags;
  }

  absl::StatusOr<v1::Completion> Measure(
      const v1::LeasedTask& lease, const rpc::TaskFolder& folder,
      const DeviceEngines& engines, const MeasureProgress& progress) override;

 private:
  void Watch();
  void Look();
  KnownPhone Ask(KnownPhone phone) const;
  // ERRORS: NotFound naming what is missing.
  absl::StatusOr<std::string> ProgramFor(const std::string& abi) const;

  const Flags flags_;
  const AdbClient adb_;
  absl::Mutex mutex_;
  // By device name; phones that were unplugged stay.
  std::map<std::string, KnownPhone> phones_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> busy_ ABSL_GUARDED_BY(mutex_);
  // Not mutex_: whoever is woken asks for the devices.
  absl::Mutex wake_mutex_;
  std::function<void()> wake_ ABSL_GUARDED_BY(wake_mutex_);
  absl::Notification stop_;
  std::thread watcher_;
};

void AdbDriver::Watch() {
  while (!stop_.HasBeenNotified()) {
    Look();
    stop_.WaitForNotificationWithTimeout(kLookEvery);
  }
}

void AdbDriver::Look() {
  const absl::StatusOr<std::string> text =
      adb_.Run({"devices", "-l"}, kAdbLimit);
  std::map<std::string, AdbDevice> listed;
  std::string trouble = "not connected";
  if (text.ok()) {
    for (AdbDevice& device : ParseAdbDevices(*text)) {
      const std::string name = NameOfSerial(device.serial);
      if (!name.empty()) listed[name] = std::move(device);
    }
  } else {
    trouble = std::string(text.status().message());
  }
  std::map<std::string, KnownPhone> phones;
  std::set<std::string> busy;
  {
    absl::MutexLock lock(&mutex_);
    phones = phones_;
    busy = busy_;
  }
  for (const auto& [name, device] : listed) {
    KnownPhone& phone = phones[name];
    phone.serial = device.serial;
    phone.status.mutable_info()->set_name(name);
    phone.status.mutable_info()->set_driver("adb");
  }
  for (auto& [name, phone] : phones) {
    const auto found = listed.find(name);
    if (found == listed.end() || found->second.state != "device") {
      phone.status.set_ready(false);
      phone.status.set_cooling(false);
      phone.status.set_unreachable(true);
      phone.status.set_reason(
          found == listed.end() ? trouble : Explain(found->second.state));
      // It may come back as after a reboot.
      phone.asked = absl::InfinitePast();
    } else if (!busy.contains(name)) {
      phone = Ask(std::move(phone));
    }
    if (stop_.HasBeenNotified()) return;
  }
  bool changed = false;
  {
    absl::MutexLock lock(&mutex_);
    changed = !SameStates(phones_, phones);
    phones_ = std::move(phones);
  }
  absl::MutexLock lock(&wake_mutex_);
  if (changed && wake_) wake_();
}

KnownPhone AdbDriver::Ask(KnownPhone phone) const {
  if (absl::Now() - phone.asked < kAskEvery) return phone;
  v1::DeviceStatus& status = phone.status;
  const std::string name = status.info().name();
  status.set_ready(false);
  status.set_cooling(false);
  status.set_unreachable(true);
  const auto shell = [&](const char* command) {
    return adb_.RunOn(phone.serial, {"shell", command}, kAdbLimit);
  };
  const absl::StatusOr<std::string> description = shell(kDescribePhone);
  if (!description.ok()) {
    status.set_reason(std::string(description.status().message()));
    return phone;
  }
  *status.mutable_info() = ParsePhone(*description, &phone.abi);
  status.mutable_info()->set_name(name);
  status.mutable_info()->set_driver("adb");
  status.mutable_info()->set_build_version(OPTFARM_VERSION);
  for (const std::string& tag : flags_.tags) {
    status.mutable_info()->add_tags(tag);
  }
  v1::DeviceHealth health;
  // Older phones lack the second; neither is worth a phone.
  ReadBattery(shell("dumpsys battery").value_or(""), &health);
  ReadThermal(shell("dumpsys thermalservice").value_or(""), &health);
  *status.mutable_health() = health;
  status.set_unreachable(false);
  phone.asked = absl::Now();
  if (const auto program = ProgramFor(phone.abi); !program.ok()) {
    status.set_disabled(true);
    status.set_reason(std::string(program.status().message()));
    return phone;
  }
  status.set_disabled(false);
  const std::string reason = WhyWait(health, flags_.quiet);
  status.set_reason(reason);
  status.set_ready(reason.empty());
  status.set_cooling(!reason.empty());
  return phone;
}

absl::StatusOr<std::string> AdbDriver::ProgramFor(
    const std::string& abi) const {
  std::string path =
      JoinPath(flags_.phone_programs, absl::StrCat("optfarm-agent-", abi));
  if (!flags_.phone_programs.empty() && NameOfSerial(abi) == abi &&
      Exists(path)) {
    return path;
  }
  return absl::NotFoundError(
      absl::StrCat("--phone_programs has no optfarm-agent-", abi,
                   " for this phone's processor"));
}

absl::StatusOr<v1::Completion> AdbDriver::Measure(
    const v1::LeasedTask& lease, const rpc::TaskFolder& folder,
    const DeviceEngines& /*engines*/, const MeasureProgress& progress) {
  const std::string& serial = flags_.serial;
  progress(0, absl::StrCat("pushing files to phone ", serial));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string description,
      adb_.RunOn(serial, {"shell", kDescribePhone}, kAdbLimit));
  std::string abi;
  ParsePhone(description, &abi);
  const absl::StatusOr<std::string> program = ProgramFor(abi);
  if (!program.ok()) {
    return absl::UnavailableError(program.status().message());
  }
  const v1::BenchmarkSpec& spec = lease.benchmark().spec();
  const absl::Duration cool_down =
      spec.has_cool_down() ? rpc::FromProtoDuration(spec.cool_down())
                           : absl::Seconds(flags_.cool_down_seconds);
  PhoneTask task;
  task.program = *program;
  task.fixed_performance = flags_.fixed_performance;
  // More than 0 says that the task is past its provision.
  task.on_ready = [&] { progress(0.01, absl::StrCat("on phone ", serial)); };
  task.limit = kSlack + cool_down +
               rpc::FromProtoDuration(spec.max_time()) *
                   (std::max(2, spec.threads_size()) *
                    lease.benchmark().variants_size());
  task.flags = {
      // What is measured is linked from where all tasks of the phone find it.
      "--no_sandbox",
      absl::StrCat("--name=", flags_.shared.name),
      absl::StrCat("--cool_down_seconds=", flags_.cool_down_seconds),
      absl::StrCat("--max_celsius=", flags_.quiet.max_celsius),
      absl::StrCat("--max_load=", flags_.quiet.max_load),
      absl::StrCat("--min_battery=", flags_.quiet.min_battery_percent)};
  if (!flags_.threads.empty()) {
    task.flags.push_back(
        absl::StrCat("--threads=", absl::StrJoin(flags_.threads, ",")));
  }
  if (!flags_.cpus.empty()) {
    task.flags.push_back(absl::StrCat("--cpus=", flags_.cpus));
  }
  return Phone(adb_, serial).Run(lease, folder, task);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceDriver>> MakeAdbDriver(
    const Flags& flags) {
  OPTFARM_ASSIGN_OR_RETURN(AdbClient adb, AdbClient::Make(flags.adb));
  return std::make_unique<AdbDriver>(flags, std::move(adb));
}

}  // namespace optfarm::device_agent
