package admin

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/attestry/attestry/emulator/storage"
)

// Limits of production (google/bigtable/admin/v2/table.proto, Backup and
// CopyBackupRequest).
const (
	minBackupAge = 6 * time.Hour
	maxBackupAge = 90 * day
	maxCopyAge   = 30 * day
	minHotAge    = day
)

var (
	backupID   = regexp.MustCompile(`^[_a-zA-Z0-9][-_.a-zA-Z0-9]{0,49}$`)
	backupName = regexp.MustCompile(`^projects/[^/]+/instances/[^/]+/clusters/[^/]+/backups/[^/]+$`)
)

func backupNotFound(name string) error {
	return status.Errorf(codes.NotFound, "Backup not found: %s", name)
}

// checkExpiry refuses an expire time that is not within production's bounds after
// from.
func checkExpiry(expire *timestamppb.Timestamp, from time.Time, most time.Duration) error {
	if expire == nil || expire.CheckValid() != nil {
		return invalid("expire_time is missing or invalid")
	}
	if age := expire.AsTime().Sub(from); age < minBackupAge || age > most {
		return invalid("expire_time is %s after the backup's creation; want %s to %s", age, minBackupAge, most)
	}
	return nil
}

// checkHot refuses a time that a backup cannot become a standard one at.
func checkHot(b *adminpb.Backup) error {
	t := b.GetHotToStandardTime()
	switch {
	case t == nil:
		return nil
	case b.GetBackupType() != adminpb.Backup_HOT:
		return invalid("hot_to_standard_time is set on a backup that is not of type HOT")
	case t.CheckValid() != nil || t.AsTime().Sub(b.GetStartTime().AsTime()) < minHotAge:
		return invalid("hot_to_standard_time must be at least %s after the backup's creation", minHotAge)
	}
	return nil
}

// newBackupName returns the full name of a backup to be made.
func (s *Tables) newBackupName(cluster, id string) (string, error) {
	if _, err := clusterOf(s.engine, cluster); err != nil {
		return "", err
	}
	if !backupID.MatchString(id) {
		return "", invalid("Invalid backup id %q: want 1 to 50 of [-_.a-zA-Z0-9], the first not - or .", id)
	}
	return cluster + "/backups/" + id, nil
}

// CreateBackup copies a table. The copy shares its files with the table as long as
// both need them.
func (s *Tables) CreateBackup(_ context.Context, req *adminpb.CreateBackupRequest) (*longrunningpb.Operation, error) {
	start := s.now()
	name, err := s.newBackupName(req.GetParent(), req.GetBackupId())
	if err != nil {
		return nil, err
	}
	source := req.GetBackup().GetSourceTable()
	instance, _, _ := strings.Cut(req.GetParent(), "/clusters/")
	if !strings.HasPrefix(source, instance+"/tables/") {
		return nil, invalid("The source table %q is not one of the instance %s", source, instance)
	}
	def := &adminpb.Backup{
		Name: name, SourceTable: source, ExpireTime: req.GetBackup().GetExpireTime(), StartTime: timestamppb.New(start),
		BackupType: req.GetBackup().GetBackupType(), HotToStandardTime: req.GetBackup().GetHotToStandardTime(), EncryptionInfo: googleEncryption(),
	}
	if def.GetBackupType() == adminpb.Backup_BACKUP_TYPE_UNSPECIFIED {
		def.BackupType = adminpb.Backup_STANDARD
	}
	if err := checkExpiry(def.GetExpireTime(), start, maxBackupAge); err != nil {
		return nil, err
	}
	if err := checkHot(def); err != nil {
		return nil, err
	}
	b, err := s.engine.CreateBackup(def)
	switch {
	case errors.Is(err, storage.ErrExists):
		return nil, status.Errorf(codes.AlreadyExists, "Backup already exists: %s", name)
	case errors.Is(err, storage.ErrMissing):
		return nil, notFound(source)
	case err != nil:
		return nil, internal(err)
	}
	return s.operations.done(name, b.Def, &adminpb.CreateBackupMetadata{
		Name: name, SourceTable: source, StartTime: def.GetStartTime(), EndTime: b.Def.GetEndTime(),
	})
}

// CopyBackup copies a backup that is not a copy itself.
func (s *Tables) CopyBackup(_ context.Context, req *adminpb.CopyBackupRequest) (*longrunningpb.Operation, error) {
	start := s.now()
	name, err := s.newBackupName(req.GetParent(), req.GetBackupId())
	if err != nil {
		return nil, err
	}
	copied, err := s.backup(req.GetSourceBackup())
	if err != nil {
		return nil, err
	}
	source := copied.Def
	if source.GetSourceBackup() != "" {
		return nil, status.Errorf(codes.FailedPrecondition, "The backup %s is a copy; a copy cannot be copied", source.GetName())
	}
	if err := checkExpiry(req.GetExpireTime(), start, maxCopyAge); err != nil {
		return nil, err
	}
	def := &adminpb.Backup{
		Name: name, SourceTable: source.GetSourceTable(), SourceBackup: source.GetName(), ExpireTime: req.GetExpireTime(),
		StartTime: timestamppb.New(start), BackupType: adminpb.Backup_STANDARD, EncryptionInfo: googleEncryption(),
	}
	b, err := s.engine.CopyBackup(def)
	switch {
	case errors.Is(err, storage.ErrExists):
		return nil, status.Errorf(codes.AlreadyExists, "Backup already exists: %s", name)
	case errors.Is(err, storage.ErrMissing):
		return nil, backupNotFound(source.GetName())
	case err != nil:
		return nil, internal(err)
	}
	return s.operations.done(name, b.Def, &adminpb.CopyBackupMetadata{
		Name: name, SourceBackupInfo: infoOf(source), Progress: s.progress(start),
	})
}

// progress is that of an operation that has ended now.
func (s *Tables) progress(start time.Time) *adminpb.OperationProgress {
	return &adminpb.OperationProgress{ProgressPercent: 100, StartTime: timestamppb.New(start), EndTime: timestamppb.New(s.now())}
}

func infoOf(b *adminpb.Backup) *adminpb.BackupInfo {
	return &adminpb.BackupInfo{
		Backup: b.GetName(), StartTime: b.GetStartTime(), EndTime: b.GetEndTime(),
		SourceTable: b.GetSourceTable(), SourceBackup: b.GetSourceBackup(),
	}
}

func (s *Tables) backup(name string) (*storage.Backup, error) {
	if !backupName.MatchString(name) {
		return nil, invalid("Invalid backup name %q: want projects/<project>/instances/<instance>/clusters/<cluster>/backups/<backup>", name)
	}
	b, err := s.engine.Backup(name)
	if err != nil {
		return nil, internal(err)
	}
	if b == nil {
		return nil, backupNotFound(name)
	}
	return b, nil
}

// shown is a backup's definition at a time: a hot one may have become a standard
// one.
func shown(b *adminpb.Backup, now time.Time) *adminpb.Backup {
	if t := b.GetHotToStandardTime(); t != nil && !now.Before(t.AsTime()) {
		b.BackupType = adminpb.Backup_STANDARD
	}
	return b
}

// GetBackup returns a backup's definition.
func (s *Tables) GetBackup(_ context.Context, req *adminpb.GetBackupRequest) (*adminpb.Backup, error) {
	b, err := s.backup(req.GetName())
	if err != nil {
		return nil, err
	}
	return shown(b.Def, s.now()), nil
}

// UpdateBackup changes what the mask names.
func (s *Tables) UpdateBackup(_ context.Context, req *adminpb.UpdateBackupRequest) (*adminpb.Backup, error) {
	in := req.GetBackup()
	if _, err := s.backup(in.GetName()); err != nil {
		return nil, err
	}
	if len(req.GetUpdateMask().GetPaths()) == 0 {
		return nil, invalid("A non-empty 'update_mask' must be specified")
	}
	var out *adminpb.Backup
	err := s.engine.ChangeBackup(in.GetName(), func(def *adminpb.Backup) error {
		out = shown(def, s.now())
		for _, path := range req.GetUpdateMask().GetPaths() {
			switch path {
			case "expire_time":
				most := maxBackupAge
				if def.GetSourceBackup() != "" {
					most = maxCopyAge
				}
				if err := checkExpiry(in.GetExpireTime(), def.GetStartTime().AsTime(), most); err != nil {
					return err
				}
				if !in.GetExpireTime().AsTime().After(s.now()) {
					return invalid("expire_time %s has passed", in.GetExpireTime().AsTime().Format(time.RFC3339))
				}
				def.ExpireTime = in.GetExpireTime()
			case "hot_to_standard_time":
				def.HotToStandardTime = in.GetHotToStandardTime()
				if err := checkHot(def); err != nil {
					return err
				}
			default:
				return invalid("update_mask: %q of a backup cannot be changed", path)
			}
		}
		return nil
	})
	if errors.Is(err, storage.ErrMissing) {
		return nil, backupNotFound(in.GetName())
	}
	if err != nil {
		return nil, internal(err)
	}
	return out, nil
}

// DeleteBackup removes a backup. Tables that were restored from it stay.
func (s *Tables) DeleteBackup(_ context.Context, req *adminpb.DeleteBackupRequest) (*emptypb.Empty, error) {
	if _, err := s.backup(req.GetName()); err != nil {
		return nil, err
	}
	err := s.engine.DropBackup(req.GetName())
	if errors.Is(err, storage.ErrMissing) {
		return nil, backupNotFound(req.GetName())
	}
	if err != nil {
		return nil, internal(err)
	}
	return &emptypb.Empty{}, dropPolicies(s.engine, req.GetName())
}

// RestoreTable makes a table of a backup, which may be of another instance. Its
// protection, change stream and automated backups are not those of the source. The
// call returns when the table is complete.
func (s *Tables) RestoreTable(ctx context.Context, req *adminpb.RestoreTableRequest) (*longrunningpb.Operation, error) {
	start := s.now()
	if err := checkTableID(req.GetParent(), req.GetTableId()); err != nil {
		return nil, err
	}
	if req.GetBackup() == "" {
		return nil, invalid("No backup to restore is given")
	}
	source, err := s.backup(req.GetBackup())
	if err != nil {
		return nil, err
	}
	info := infoOf(source.Def)
	def := proto.CloneOf(source.Table.Def)
	def.Name = req.GetParent() + "/tables/" + req.GetTableId()
	def.DeletionProtection, def.ChangeStreamConfig, def.AutomatedBackupConfig = false, nil, nil
	def.RestoreInfo = &adminpb.RestoreInfo{SourceType: adminpb.RestoreSourceType_BACKUP, SourceInfo: &adminpb.RestoreInfo_BackupInfo{BackupInfo: info}}
	err = s.engine.RestoreTable(ctx, req.GetBackup(), def)
	if errors.Is(err, storage.ErrMissing) {
		return nil, backupNotFound(req.GetBackup())
	}
	if err != nil {
		return nil, answer(def.GetName(), err)
	}
	if err := dropPolicies(s.engine, def.GetName()); err != nil {
		return nil, err
	}
	return s.operations.done(def.GetName(), def, &adminpb.RestoreTableMetadata{
		Name: def.GetName(), SourceType: adminpb.RestoreSourceType_BACKUP,
		SourceInfo: &adminpb.RestoreTableMetadata_BackupInfo{BackupInfo: info}, Progress: s.progress(start),
	})
}
