#include "runtime/datalens/run.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/data/digits.h"
#include "gan_models/datalens/datalens.h"
#include "gan_models/evaluation/picture.h"
#include "nlohmann/json.hpp"
#include "runtime/base/real_loop.h"
#include "runtime/datalens/run_files.h"
#include "runtime/datalens/stop_signals.h"
#include "runtime/datalens/student_peer.h"
#include "runtime/datalens/teacher_peer.h"
#include "runtime/transport/grpc/grpc_transport.h"
#include "runtime/transport/inproc/inproc_network.h"

namespace gossamer {
namespace {

constexpr int kSamples = 3000;  // for the classifier to learn from
constexpr absl::Duration kSayEvery = absl::Seconds(2);

absl::StatusOr<Digits> Load(const DataLensRun& run) {
  // The settings are checked first, which needs no data.
  GOSSAMER_RETURN_IF_ERROR(CheckSettings(run.settings, kDigitPixels));
  if (run.groups < 1 || run.groups > run.settings.teachers) {
    return absl::InvalidArgumentError(
        absl::StrFormat("groups is %d; it must lie between 1 and the %d "
                        "teachers",
                        run.groups, run.settings.teachers));
  }
  if (run.group < 0 || run.group >= run.groups) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "group is %d; of %d groups it must lie between 0 and %d", run.group,
        run.groups, run.groups - 1));
  }
  GOSSAMER_ASSIGN_OR_RETURN(Digits digits, ReadDigits(run.data));
  GOSSAMER_RETURN_IF_ERROR(
      CheckExamples(run.settings, digits.train.labels.size()));
  return digits;
}

absl::StatusOr<std::unique_ptr<TeacherGroup>> GroupOf(const DataLensRun& run,
                                                      const ImageBatch& train,
                                                      int group) {
  const int teachers = run.settings.teachers;
  const int first = FirstTeacher(teachers, group, run.groups);
  return MakeTeacherGroup(
      run.settings, train, kDigitClasses, first,
      FirstTeacher(teachers, group + 1, run.groups) - first);
}

RngKey NoiseOf(const DataLensRun& run) {
  if (run.noise_seed) {
    std::fprintf(stderr,
                 "warning: --noise-seed: whoever knows it can take the noise "
                 "off, so nothing is private\n");
    return RngKey(*run.noise_seed).Fold("noise");
  }
  std::random_device system;
  RngKey key(0);
  for (int i = 0; i < 8; ++i) key = key.Fold(system());
  return key;
}

// Reports the progress, every few seconds.
class Progress {
 public:
  Progress(const DataLensRun& run, const EventLoop* loop)
      : budget_(run.settings.budget), quiet_(run.quiet), loop_(loop) {}
  void Step(const StudentProgress& p) {
    if (quiet_ || loop_->Now() < next_) return;
    next_ = loop_->Now() + kSayEvery;
    std::fprintf(stderr, "step %d  images %d  epsilon %.3f of %g\n",
                 static_cast<int>(p.step), static_cast<int>(p.queries),
                 p.epsilon, budget_.epsilon);
  }

 private:
  const PrivacyBudget budget_;
  const bool quiet_;
  const EventLoop* const loop_;
  absl::Time next_ = absl::InfinitePast();
};

StudentOptions OptionsOf(const DataLensRun& run, const RunFiles& files,
                         Progress* progress) {
  return {
      .settings = run.settings,
      .dimensions = kDigitPixels,
      .classes = kDigitClasses,
      .groups = run.groups,
      .noise = NoiseOf(run),
      .noise_repeats = run.noise_seed.has_value(),
      .most_steps = run.steps,
      .kept = files.kept.get(),
      .ledger = files.ledger.get(),
      .keep_every = run.checkpoint_every,
      .patience = absl::Seconds(run.patience),
      .on_step = [progress](const StudentProgress& p) { progress->Step(p); }};
}

// Restores the kept state, and reports it.
absl::Status Restore(const DataLensRun& run, StudentPeer& peer) {
  GOSSAMER_RETURN_IF_ERROR(peer.Restore());
  const StudentProgress& p = peer.progress();
  if (!run.quiet && p.queries > 0) {
    std::fprintf(stderr, "%s: after step %d; epsilon %.4g of %g is spent\n",
                 run.checkpoints.c_str(), static_cast<int>(p.step), p.epsilon,
                 run.settings.budget.epsilon);
  }
  return absl::OkStatus();
}

TeacherOptions TeacherOptionsOf(const DataLensRun& run, const RunFiles& files) {
  return {.settings = run.settings,
          .dimensions = kDigitPixels,
          .classes = kDigitClasses,
          .student = run.student,
          .patience = absl::Seconds(run.patience),
          .kept = files.kept.get(),
          .on_problem = [](const std::string& what) {
            std::fprintf(stderr, "warning: %s\n", what.c_str());
          }};
}

absl::Status WriteSamples(const ImageBatch& batch, const std::string& path) {
  constexpr int kShown = 100, kColumns = 10, kSide = 8, kScale = 4;
  std::vector<float> colours;
  for (int i = 0; i < kShown; ++i) {
    for (int plane = 0; plane < 3; ++plane) {
      const float* const image = batch.images.data() + i * kDigitPixels;
      colours.insert(colours.end(), image, image + kDigitPixels);
    }
  }
  return WritePng(ImageGrid(colours, kSide, kColumns, kScale), path);
}

const char* HowItEnded(const DataLensRun& run, const StudentPeer& peer) {
  if (peer.budget_spent()) {
    return "the privacy budget does not allow another batch";
  }
  if (!peer.stopped()) return "all steps are made";
  return run.checkpoints.empty() ? "told to stop"
                                 : "told to stop; the same command goes on";
}

// Scores the student's samples and prints the results.
absl::Status Report(const DataLensRun& run, const Digits& digits,
                    const StudentPeer& peer, Student& student) {
  GOSSAMER_ASSIGN_OR_RETURN(const ImageBatch samples,
                            student.Sample(kSamples, run.settings.seed));
  GOSSAMER_ASSIGN_OR_RETURN(
      const double accuracy,
      ClassifierAccuracy(samples, digits.held_out, kDigitClasses,
                         run.settings.seed));
  if (!run.samples.empty()) {
    GOSSAMER_RETURN_IF_ERROR(WriteSamples(samples, run.samples));
  }
  const StudentProgress& p = peer.progress();
  if (run.json) {
    const nlohmann::ordered_json json = {
        {"steps", p.step},
        {"images_asked_about", p.queries},
        {"epsilon", p.epsilon},
        {"delta", run.settings.budget.delta},
        {"epsilon_budget", run.settings.budget.epsilon},
        {"budget_spent", peer.budget_spent()},
        {"stopped", peer.stopped()},
        {"private", !run.noise_seed.has_value()},
        {"teachers", run.settings.teachers},
        {"images_per_teacher", digits.train.labels.size() /
                                   static_cast<size_t>(run.settings.teachers)},
        {"accuracy", accuracy},
        {"held_out", digits.held_out.labels.size()},
        {"samples", run.samples}};
    std::cout << json.dump(2) << "\n";
    return absl::OkStatus();
  }
  absl::PrintF(
      "ended     %s, after %d steps, %d images\n"
      "privacy   (%.4g, %g)-DP of %g%s\n"
      "accuracy  %.3f on %d held-out images, of a classifier that learnt from "
      "%d samples (chance is 0.1)\n",
      HowItEnded(run, peer), p.step, p.queries, p.epsilon,
      run.settings.budget.delta, run.settings.budget.epsilon,
      run.noise_seed ? ", were the noise's seed not known" : "", accuracy,
      digits.held_out.labels.size(), kSamples);
  if (!run.samples.empty()) absl::PrintF("samples   %s\n", run.samples);
  return absl::OkStatus();
}

struct Door {
  std::shared_ptr<const CertificateFolder> certificates;
  std::string run_id = "datalens";
};

absl::StatusOr<Door> DoorOf(const DataLensRun& run, PeerId self,
                            const std::string& address) {
  Door door;
  GOSSAMER_ASSIGN_OR_RETURN(
      door.certificates,
      OpenDoor({.certificates = run.certificates, .insecure = run.insecure},
               address));
  if (door.certificates == nullptr) return door;
  const Identity& identity = door.certificates->identity();
  if (identity.role != Role::kPeer || identity.peer != self) {
    return absl::InvalidArgumentError(
        absl::StrCat("--certs are of ", ToUri(identity), ", and this is peer ",
                     self.value, ": the student is 1, group 0 of teachers 2"));
  }
  door.run_id = identity.run;
  return door;
}

absl::StatusOr<std::unique_ptr<GrpcTransport>> Connected(
    const DataLensRun& run, RealLoop* loop, PeerId self,
    const std::string& listen, const std::string& address) {
  GOSSAMER_ASSIGN_OR_RETURN(const Door door, DoorOf(run, self, address));
  GrpcOptions options;
  options.self = self;
  options.run_id = door.run_id;
  options.listen_address = listen;
  options.certificates = door.certificates;
  options.allow_insecure_remote = run.insecure;
  options.dial_from_both_ends = true;  // teachers know the student's address
  options.max_body_bytes = size_t{16} << 20;
  options.on_problem = [](PeerId peer, const absl::Status& why) {
    std::fprintf(stderr, "peer %d: %s\n", static_cast<int>(peer.value),
                 std::string(why.message()).c_str());
  };
  return GrpcTransport::Create(loop, std::move(options));
}

// A group of teachers on a loop and a thread of its own.
struct Seat {
  RunFiles files;
  RealLoop loop;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<TeacherGroup> teachers;
  std::unique_ptr<TeacherPeer> peer;
  absl::Status ended;
};

}  // namespace

absl::Status TrainHere(const DataLensRun& run) {
  StopSignals signals;
  GOSSAMER_ASSIGN_OR_RETURN(const Digits digits, Load(run));
  GOSSAMER_ASSIGN_OR_RETURN(const RunFiles files, OpenStudentFiles(run));
  InprocNetwork network;
  RealLoop loop;
  Progress progress(run, &loop);
  const auto student = MakeStudent(run.settings, kDigitPixels, kDigitClasses);
  const auto transport = network.CreateEndpoint(kStudentId, &loop);
  absl::Status ended;
  StudentPeer peer(&loop, transport.get(), student.get(),
                   OptionsOf(run, files, &progress), [&](absl::Status status) {
                     ended = std::move(status);
                     loop.Stop();
                   });
  transport->SetListener(&peer);
  GOSSAMER_RETURN_IF_ERROR(Restore(run, peer));
  std::vector<std::unique_ptr<Seat>> seats;
  for (int g = 0; g < run.groups; ++g) {
    auto seat = std::make_unique<Seat>();
    GOSSAMER_ASSIGN_OR_RETURN(seat->teachers, GroupOf(run, digits.train, g));
    GOSSAMER_ASSIGN_OR_RETURN(seat->files,
                              OpenTeacherFiles(run, digits.train, g));
    seat->transport = network.CreateEndpoint(TeacherGroupId(g), &seat->loop);
    seat->peer = std::make_unique<TeacherPeer>(
        &seat->loop, seat->transport.get(), seat->teachers.get(),
        TeacherOptionsOf(run, seat->files),
        [s = seat.get()](absl::Status status) {
          s->ended = std::move(status);
          s->loop.Post([s] { s->transport.reset(); });
        });
    seat->transport->SetListener(seat->peer.get());
    GOSSAMER_RETURN_IF_ERROR(seat->peer->Restore());
    seats.push_back(std::move(seat));
  }
  for (const auto& seat : seats) {
    seat->loop.Post([s = seat.get()] { s->peer->Start(); });
    seat->loop.Start();
  }
  loop.Post([&] {
    signals.Watch(&loop, [&] { peer.Stop(); });
    peer.Start();
  });
  loop.Run();
  // A vote under way ends first: its thread cannot be interrupted.
  for (const auto& seat : seats) {
    seat->loop.PostAndWait([s = seat.get()] { s->transport.reset(); },
                           absl::InfiniteDuration());
    seat->loop.Stop();
    ended.Update(seat->ended);  // the student's error comes first
  }
  seats.clear();
  GOSSAMER_RETURN_IF_ERROR(ended);
  return Report(run, digits, peer, *student);
}

absl::Status RunStudent(const DataLensRun& run) {
  StopSignals signals;
  GOSSAMER_ASSIGN_OR_RETURN(const Digits digits, Load(run));
  GOSSAMER_ASSIGN_OR_RETURN(const RunFiles files, OpenStudentFiles(run));
  RealLoop loop;
  Progress progress(run, &loop);
  const auto student = MakeStudent(run.settings, kDigitPixels, kDigitClasses);
  GOSSAMER_ASSIGN_OR_RETURN(
      const auto transport,
      Connected(run, &loop, kStudentId, run.listen, run.listen));
  absl::Status ended;
  StudentPeer peer(&loop, transport.get(), student.get(),
                   OptionsOf(run, files, &progress), [&](absl::Status status) {
                     ended = std::move(status);
                     loop.Stop();
                   });
  transport->SetListener(&peer);
  GOSSAMER_RETURN_IF_ERROR(Restore(run, peer));
  if (!run.port_file.empty()) {
    std::ofstream file(run.port_file);
    file << transport->port() << "\n";
    if (!file.flush()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--port-file ", run.port_file, ": cannot be written"));
    }
  }
  loop.Post([&] {
    signals.Watch(&loop, [&] { peer.Stop(); });
    peer.Start();
  });
  loop.Run();
  GOSSAMER_RETURN_IF_ERROR(ended);
  return Report(run, digits, peer, *student);
}

absl::Status RunTeachers(const DataLensRun& run) {
  StopSignals signals;
  GOSSAMER_ASSIGN_OR_RETURN(const Digits digits, Load(run));
  GOSSAMER_ASSIGN_OR_RETURN(const auto teachers,
                            GroupOf(run, digits.train, run.group));
  GOSSAMER_ASSIGN_OR_RETURN(const RunFiles files,
                            OpenTeacherFiles(run, digits.train, run.group));
  RealLoop loop;
  GOSSAMER_ASSIGN_OR_RETURN(
      const auto transport,
      Connected(run, &loop, TeacherGroupId(run.group), "", run.student));
  absl::Status ended;
  TeacherPeer peer(&loop, transport.get(), teachers.get(),
                   TeacherOptionsOf(run, files), [&](absl::Status status) {
                     ended = std::move(status);
                     loop.Stop();
                   });
  transport->SetListener(&peer);
  GOSSAMER_RETURN_IF_ERROR(peer.Restore());
  loop.Post([&] {
    signals.Watch(&loop, [&] { peer.Stop(); });
    peer.Start();
  });
  loop.Run();
  if (ended.ok() && !run.quiet) {
    std::fprintf(stderr, "teachers %d to %d answered %d questions\n",
                 teachers->first(), teachers->first() + teachers->count() - 1,
                 static_cast<int>(peer.answered()));
  }
  return ended;
}

}  // namespace gossamer
