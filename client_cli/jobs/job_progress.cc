#include "client_cli/jobs/job_progress.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client_cli/tables/job_text.h"

namespace optfarm::client_cli {

JobProgress::JobProgress(const v1::Job& job, absl::Time now)
    : state_(job.state()), start_(now) {
  for (const v1::Task& task : job.tasks()) {
    TaskView& view = tasks_[task.task_id()];
    view.title = TaskTitle(task);
    view.state = task.state();
    view.fraction = task.progress();
    view.message = task.progress_message();
  }
}

void JobProgress::Add(const v1::JobEvent& event) {
  if (event.has_job_state()) state_ = event.job_state().state();
  if (event.task_id().empty()) return;
  TaskView& view = tasks_[event.task_id()];
  if (view.title.empty()) view.title = event.task_id();
  if (event.has_task_state()) {
    view.state = event.task_state().state();
    view.fraction = 0;
    view.message = "";
  }
  if (event.has_progress()) {
    view.fraction = event.progress().fraction();
    view.message = event.progress().message();
  }
}

std::string JobProgress::Line(absl::Time now) const {
  std::string line = absl::StrCat(v1::JobState_Name(state_), " ",
                                  absl::ToInt64Seconds(now - start_), " s");
  absl::string_view separator = ": ";
  for (const auto& [id, view] : tasks_) {
    if (view.state == v1::LEASED) {
      absl::StrAppend(&line, separator, view.title,
                      absl::StrFormat(" %.0f%%", view.fraction * 100),
                      view.message.empty() ? "" : " ", view.message);
    } else if (view.state == v1::READY) {
      absl::StrAppend(&line, separator, view.title, " waits");
    } else {
      continue;
    }
    separator = "; ";
  }
  return line;
}

}  // namespace optfarm::client_cli
