#include "tests/simulation/world.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace optfarm::simulation {
namespace {

constexpr int64_t kStartSeconds = 1700000000;

// FNV-1a.
void Fold(uint64_t& digest, absl::string_view bytes) {
  for (const char byte : bytes) {
    digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  }
}

void Fold(uint64_t& digest, int64_t number) {
  digest = (digest ^ static_cast<uint64_t>(number)) * 0x100000001b3u;
}

}  // namespace

World::World(uint64_t seed, size_t notes)
    : now_(absl::FromUnixSeconds(kStartSeconds)),
      random_(seed),
      notes_(notes) {}

void World::After(absl::Duration wait, std::function<void()> action) {
  const absl::Time time = now_ + std::max(wait, absl::ZeroDuration());
  events_.push({time, ++event_count_, std::move(action)});
}

bool World::Step() {
  if (events_.empty()) return false;
  // It goes away, so that it may be moved from.
  const std::function<void()> action =
      std::move(const_cast<Event&>(events_.top()).action);
  now_ = events_.top().time;
  events_.pop();
  ++steps_;
  action();
  return true;
}

void World::Note(absl::string_view what, absl::string_view who,
                 int64_t number) {
  Fold(digest_, absl::ToUnixMicros(now_));
  Fold(digest_, what);
  Fold(digest_, who);
  Fold(digest_, number);
  NoteLine& line = notes_[next_note_];
  next_note_ = (next_note_ + 1) % notes_.size();
  line.step = steps_;
  line.time = now_;
  line.what.assign(what.data(), what.size());
  line.who.assign(who.data(), who.size());
  line.number = number;
}

std::string World::LastNotes() const {
  std::string text;
  for (size_t i = 0; i < notes_.size(); ++i) {
    const NoteLine& line = notes_[(next_note_ + i) % notes_.size()];
    if (line.what.empty()) continue;
    const absl::Duration since =
        line.time - absl::FromUnixSeconds(kStartSeconds);
    absl::StrAppend(&text, "  step ", line.step, " at ",
                    absl::FormatDuration(since), ": ", line.what, " ", line.who,
                    " ", line.number, "\n");
  }
  return text;
}

void World::Fail(std::string message) {
  if (failure_.empty()) failure_ = std::move(message);
}

}  // namespace optfarm::simulation
