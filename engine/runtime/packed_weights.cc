#include "engine/runtime/packed_weights.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "engine/runtime/memory_budget.h"
#include "engine/runtime/run_bounds.h"
#include "engine/runtime/run_memory.h"

namespace optfarm::runtime {
namespace {

// Lets whole pages go whose content is not needed any more, or can be read
// from their file again.
class PageDropper {
 public:
  // `is_allowed`: this is so for the weights' pages.
  PageDropper(bool is_allowed, const Tensor& weights)
      : is_on_(is_allowed && weights.TotalBytes() >= kLeastBytes),
        begin_(reinterpret_cast<uintptr_t>(weights.raw())),
        dropped_(begin_) {}

  // Of the first `end` bytes.
  void operator()(int64_t end) {
#if defined(__linux__)
    if (!is_on_) return;
    static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t from = (dropped_ + page - 1) / page * page;
    const uintptr_t to = (begin_ + static_cast<uintptr_t>(end)) / page * page;
    if (to <= from) return;
    // Only a hint: refused is as good as not asked.
    (void)madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
    dropped_ = to;
#endif
  }

 private:
  // UNITS: bytes. Below that it is not worth a call.
  static constexpr int64_t kLeastBytes = 64 * 1024;
  const bool is_on_;
  const uintptr_t begin_;
  uintptr_t dropped_;
};

// What is the model's is not the run's that happens to need it first.
class OutsideOfRuns {
 private:
  const MemoryScope no_places_{nullptr};
  const BudgetScope no_budget_{nullptr};
  const BoundsScope no_bounds_{nullptr};
};

}  // namespace

SharedWeights::SharedWeights(Tensor value, bool is_mapped)
    : dtype_(value.dtype()),
      shape_(value.shape()),
      is_mapped_(is_mapped),
      kept_(std::make_shared<const Tensor>(std::move(value))),
      last_(kept_) {}

absl::StatusOr<std::shared_ptr<const Tensor>> SharedWeights::Keep() {
  if (kept_ != nullptr) return kept_;
  if (std::shared_ptr<const Tensor> last = last_.lock()) return last;
  const OutsideOfRuns outside;
  for (const std::unique_ptr<Form>& form : forms_) {
    if (!form->is_ready.load(std::memory_order_relaxed)) continue;
    OPTFARM_ASSIGN_OR_RETURN(const Tensor value,
                             form->layout.unpack(form->packed));
    auto made = std::make_shared<const Tensor>(value.Reshaped(shape_));
    last_ = made;
    return made;
  }
  return absl::InternalError("weights are neither kept nor packed");
}

absl::StatusOr<Tensor> SharedWeights::Value() {
  absl::MutexLock lock(&mutex_);
  OPTFARM_ASSIGN_OR_RETURN(std::shared_ptr<const Tensor> value, Keep());
  // Strings and handles are never packed.
  if (ElementSize(dtype_) == 0) return *value;
  // The view tells whether somebody still has it.
  const void* data = value->raw();
  return Tensor::View(dtype_, shape_, data, std::move(value));
}

SharedWeights::Form* SharedWeights::FindOrAdd(WeightLayout layout) {
  absl::MutexLock lock(&mutex_);
  for (const std::unique_ptr<Form>& form : forms_) {
    if (form->layout.name == layout.name) return form.get();
  }
  forms_.push_back(std::make_unique<Form>());
  forms_.back()->layout = std::move(layout);
  return forms_.back().get();
}

const Tensor* SharedWeights::Pack(Form* form, ThreadPool* pool) {
  absl::MutexLock lock(&mutex_);
  if (form->is_ready.load(std::memory_order_relaxed)) return &form->packed;
  const OutsideOfRuns outside;
  absl::StatusOr<std::shared_ptr<const Tensor>> value = Keep();
  if (!value.ok()) return nullptr;
  // What others have as well stays whole.
  const bool is_ours = value->use_count() == (kept_ != nullptr ? 2 : 1) &&
                       (*value)->IsSoleOwner();
  PageDropper drop(is_mapped_ || is_ours, **value);
  absl::StatusOr<Tensor> packed =
      form->layout.pack(**value, pool, [&drop](int64_t end) { drop(end); });
  if (!packed.ok()) return nullptr;
  drop((*value)->TotalBytes());
  if (!is_mapped_) kept_.reset();
  form->packed = *std::move(packed);
  form->is_ready.store(true, std::memory_order_release);
  return &form->packed;
}

absl::StatusOr<Tensor> SharedWeights::PackAnew(const Form& form,
                                               ThreadPool* pool) {
  std::shared_ptr<const Tensor> value;
  {
    absl::MutexLock lock(&mutex_);
    value = kept_;
  }
  PageDropper drop(true, *value);
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor packed,
      form.layout.pack(*value, pool, [&drop](int64_t end) { drop(end); }));
  drop(value->TotalBytes());
  return packed;
}

const Tensor* PackedWeights::Get(ThreadPool* pool, Tensor* own) const {
  if (!*is_streamed_ || form_->is_ready.load(std::memory_order_acquire)) {
    return Get(pool);
  }
  absl::StatusOr<Tensor> packed = weights_->PackAnew(*form_, pool);
  if (!packed.ok()) return nullptr;
  *own = *std::move(packed);
  return own;
}

PackedWeights::PackedWeights(Tensor packed)
    : weights_(std::make_shared<SharedWeights>(packed)),
      form_(weights_->FindOrAdd({"", packed.TotalBytes(), nullptr, nullptr})),
      is_streamed_(std::make_shared<bool>(false)) {
  form_->packed = std::move(packed);
  form_->is_ready.store(true, std::memory_order_release);
}

}  // namespace optfarm::runtime
