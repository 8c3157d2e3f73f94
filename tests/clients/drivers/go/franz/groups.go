package main

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"

	"kproto/tests/clients/drivers/telling"
)

func listGroups(r *run) error {
	return withAdmin(r, func(admin *kadm.Client) error {
		if err := commit(admin, r, 1); err != nil {
			return err
		}
		return tellListed(admin, r)
	})
}

func tellListed(admin *kadm.Client, r *run) error {
	groups, err := admin.ListGroups(background)
	_, listed := groups[r.Name]
	r.Tell("listed", listed)
	return err
}

func describeGroup(r *run) error {
	return withAdmin(r, func(admin *kadm.Client) error {
		member, err := newMember(r)
		if err != nil {
			return err
		}
		if _, err := member.Wait(2); err != nil {
			return err
		}
		group, err := awaitMembers(admin, r, 1)
		if err != nil {
			return err
		}
		r.Tell("state", group.State)
		r.Tell("members", len(group.Members))
		r.Tell("assigned", telling.Sorted(slices.Collect(maps.Keys(group.AssignedPartitions()[r.Name]))))
		if err := member.Close(); err != nil {
			return err
		}
		group, err = awaitMembers(admin, r, 0)
		r.Tell("then", group.State)
		return err
	})
}

// awaitMembers describes the group until it has this many members.
func awaitMembers(admin *kadm.Client, r *run, count int) (kadm.DescribedGroup, error) {
	var group kadm.DescribedGroup
	err := telling.Until("the group's members", func() (bool, error) {
		groups, err := admin.DescribeGroups(background, r.Name)
		group = groups[r.Name]
		return len(group.Members) == count, err
	})
	return group, err
}

func deleteGroup(r *run) error {
	return withAdmin(r, func(admin *kadm.Client) error {
		if err := commit(admin, r, 1); err != nil {
			return err
		}
		tellDeletion := func(fact string) error {
			_, err := admin.DeleteGroup(background, r.Name)
			return tellCode(r, fact, err)
		}
		if err := whileMember(r, 1, func() error { return tellDeletion("busy") }); err != nil {
			return err
		}
		if err := tellDeletion("deleted"); err != nil {
			return err
		}
		if err := tellListed(admin, r); err != nil {
			return err
		}
		return tellDeletion("again")
	})
}

// whileMember does the work while a member of the group has this many partitions.
func whileMember(r *run, partitions int, work func() error) error {
	member, err := newMember(r)
	if err != nil {
		return err
	}
	if _, err := member.Wait(partitions); err != nil {
		return err
	}
	if err := work(); err != nil {
		return err
	}
	return member.Close()
}

func listGroupOffsets(r *run) error {
	return withAdmin(r, func(admin *kadm.Client) error {
		if err := commit(admin, r, 3, 7); err != nil {
			return err
		}
		return tellOffsets(admin, r, "offsets")
	})
}

func tellOffsets(admin *kadm.Client, r *run, fact string) error {
	found, err := admin.FetchOffsets(background, r.Name)
	offsets := map[int32]int64{}
	for partition, offset := range found[r.Name] {
		offsets[partition] = offset.At
	}
	r.Tell(fact, offsets)
	return err
}

func deleteOffsets(r *run) error {
	return withAdmin(r, func(admin *kadm.Client) error {
		if err := commit(admin, r, 3, 7); err != nil {
			return err
		}
		tellDeletion := func(fact string) error {
			found, err := admin.DeleteOffsets(background, r.Name, kadm.TopicsSet{r.Name: {0: {}}})
			if err == nil {
				err = found[r.Name][0]
			}
			return tellCode(r, fact, err)
		}
		if err := whileMember(r, 2, func() error { return tellDeletion("busy") }); err != nil {
			return err
		}
		if err := tellDeletion("deleted"); err != nil {
			return err
		}
		return tellOffsets(admin, r, "left")
	})
}
