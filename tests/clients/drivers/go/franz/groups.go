package main

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"

	"kproto/tests/clients/drivers/contract"
)

func listGroups(r *run) error {
	return withAdmin(r, func(admin *kadm.Client) error {
		if err := commit(admin, r, 1); err != nil {
			return err
		}
		return reportListed(admin, r)
	})
}

func reportListed(admin *kadm.Client, r *run) error {
	groups, err := admin.ListGroups(background)
	_, listed := groups[r.Name]
	r.Report("listed", listed)
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
		group, err := waitForMembers(admin, r, 1)
		if err != nil {
			return err
		}
		r.Report("state", group.state)
		r.Report("members", group.members)
		r.Report("assigned", contract.Sorted(slices.Collect(maps.Keys(group.assigned[r.Name]))))
		if err := member.Close(); err != nil {
			return err
		}
		group, err = waitForMembers(admin, r, 0)
		r.Report("then", group.state)
		return err
	})
}

// described is what both descriptions of a group have.
type described struct {
	state    string
	members  int
	assigned kadm.TopicsSet
}

func describe(admin *kadm.Client, r *run) (described, error) {
	if speaksConsumerProtocol {
		groups, err := admin.DescribeConsumerGroups(background, r.Name)
		group := groups[r.Name]
		return described{group.State, len(group.Members), group.AssignedPartitions()}, err
	}
	groups, err := admin.DescribeGroups(background, r.Name)
	group := groups[r.Name]
	return described{group.State, len(group.Members), group.AssignedPartitions()}, err
}

// waitForMembers describes the group until it has this many members.
func waitForMembers(admin *kadm.Client, r *run, count int) (described, error) {
	var group described
	err := contract.WaitUntil("the group's members", func() (bool, error) {
		var err error
		group, err = describe(admin, r)
		return group.members == count, err
	})
	return group, err
}

func deleteGroup(r *run) error {
	return withAdmin(r, func(admin *kadm.Client) error {
		if err := commit(admin, r, 1); err != nil {
			return err
		}
		reportDeletion := func(result string) error {
			_, err := admin.DeleteGroup(background, r.Name)
			return reportCode(r, result, err)
		}
		if err := contract.WhileMember(scenarioMember, r, 1, func() error { return reportDeletion("busy") }); err != nil {
			return err
		}
		if err := reportDeletion("deleted"); err != nil {
			return err
		}
		if err := reportListed(admin, r); err != nil {
			return err
		}
		return reportDeletion("again")
	})
}

func listGroupOffsets(r *run) error {
	return withAdmin(r, func(admin *kadm.Client) error {
		if err := commit(admin, r, 3, 7); err != nil {
			return err
		}
		return reportOffsets(admin, r, "offsets")
	})
}

func reportOffsets(admin *kadm.Client, r *run, result string) error {
	found, err := admin.FetchOffsets(background, r.Name)
	offsets := map[int32]int64{}
	for partition, offset := range found[r.Name] {
		offsets[partition] = offset.At
	}
	r.Report(result, offsets)
	return err
}

func deleteOffsets(r *run) error {
	return withAdmin(r, func(admin *kadm.Client) error {
		if err := commit(admin, r, 3, 7); err != nil {
			return err
		}
		reportDeletion := func(result string) error {
			found, err := admin.DeleteOffsets(background, r.Name, kadm.TopicsSet{r.Name: {0: {}}})
			if err == nil {
				err = found[r.Name][0]
			}
			return reportCode(r, result, err)
		}
		if err := contract.WhileMember(scenarioMember, r, 2, func() error { return reportDeletion("busy") }); err != nil {
			return err
		}
		if err := reportDeletion("deleted"); err != nil {
			return err
		}
		return reportOffsets(admin, r, "left")
	})
}
